"""What ordinary loops, optimizers and datasets bring along: counted, left out, or refused before anything is spent."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import adapted, gpt2, largest_move, next_word, small, stir, texts  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.data import TensorDataset, random_split  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import DomainMismatch, InvalidParameter, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, sums  # noqa: E402
from ppdp.mechanisms.lora.gradients import FullGradients  # noqa: E402

PUBLIC = {"n_rows": 40, "batch_size": 40, "steps": 3, "epsilon": 2.0, "delta": 1e-5, "clip": 1e-3}


def private(model=None, loss=next_word, **other):
    model = small("twice") if model is None else model
    return PrivateLoRA(model, loss, **{"probe": texts(4, seed=9), **PUBLIC, **other})


def weights_of_b(model):
    return [one for name, one in model.named_parameters() if "lora_B" in name]


@pytest.mark.parametrize("made", [lambda used: used, lambda used: lambda tensors: used])
def test_an_optimizer_of_a_failed_training_is_not_used_again(made, monkeypatch):
    """Its momentum is made of steps that the second certificate would not count."""
    model = small("twice")
    optimizer = torch.optim.SGD(weights_of_b(model), lr=1.0, momentum=0.99)
    own, second = (private(model, optimizer=optimizer) for _ in range(2))
    batches = own.batches(texts(40))
    own.step(next(batches))
    batch = next(batches)
    with monkeypatch.context() as patch:
        patch.setattr(sums, "backward", lambda *_: 1 / 0)
        with pytest.raises(StageFailed):
            own.step(batch)
    for begin in (lambda: private(model, optimizer=made(optimizer)), lambda: second.fit(texts(40))):
        with pytest.raises(InvalidParameter, match="the optimizer took steps"):
            begin()
    assert private(model).fit(texts(40)).certificate_.verify()


@pytest.mark.parametrize("method", ["fa", "m2"])
@pytest.mark.parametrize("last", [False, True])
def test_a_loop_with_a_step_of_its_own_has_no_certificate(method, last):
    own = private(method=method, steps=1 if last else 2)
    batches = own.batches(texts(40))
    own.step(batch := next(batches))
    layer = own._layers[0]
    layer.trained.requires_grad_(True)
    next_word(own.model, batch).mean().backward()
    torch.optim.SGD([layer.trained], lr=1.0).step()
    with pytest.raises(InvalidParameter, match="weights changed, and no step"):
        own.finish() if last else own.step(next(batches))
    assert own.certificate_ is None


@pytest.mark.parametrize("matrix", ["lora_A", "lora_B"])
def test_matrices_that_a_loop_puts_there_have_no_certificate(matrix):
    own = private(steps=1)
    own.step(next(own.batches(texts(40))))
    linear = getattr(own._layers[0].module, matrix)["default"]
    linear.weight = nn.Parameter(linear.weight.detach() + 1)
    with pytest.raises(InvalidParameter, match="weights changed since"):
        own.finish()


@pytest.mark.parametrize("clip", [1e-180, 1e-101, 1e101])
def test_clips_whose_squares_float64_cannot_hold_are_refused(clip):
    with pytest.raises(InvalidParameter, match="clip must be"):
        private(clip=clip)


def test_ghost_norms_whose_inner_products_vanish_are_no_less():
    layer = private(method="m2")._layers[0]
    found = FullGradients([layer], 1)
    x, g = torch.zeros(2, 1, 1, 12, dtype=torch.float64)
    x[..., 0], g[..., 0] = 1e-165, 1e150
    found.keep(layer, x, g)
    assert 1e-15 <= float(found.lengths()[0]) < math.inf


@pytest.mark.parametrize("kind", ["leaf", "made by an encoder"])
def test_no_gradient_reaches_behind_the_examples(kind):
    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(12, 12)

        def forward(self, x):
            return self.layer(x)

    def loss(model, batch):
        return functional.cross_entropy(model(batch["x"]), batch["y"], reduction="none")

    torch.manual_seed(0)
    encoder, raw = nn.Linear(5, 12), torch.randn(44, 5)
    x = encoder(raw) if kind != "leaf" else torch.randn(44, 12, requires_grad=True)
    y = torch.randint(0, 12, (44,))
    own = private(adapted(Features(), ["layer"]), loss, probe={"x": x[:4], "y": y[:4]})
    own.fit({"x": x[4:], "y": y[4:]})
    assert own.certificate_.verify()
    assert encoder.weight.grad is None
    assert not x.is_leaf or x.grad is None


NO_EXAMPLES = {
    "tuples": [(one, 1) for one in texts(40)["ids"]],
    "a part of a TensorDataset": random_split(TensorDataset(texts(40)["ids"]), [30, 10])[0],
    "tensors": list(texts(40)["ids"]),
    "no numbers": [{"ids": None}] * 40,
    "another type": [{"ids": one.int()} for one in texts(40)["ids"]],
    "other lengths": [{"ids": one[: 3 + place % 5]} for place, one in enumerate(texts(40)["ids"])],
}


@pytest.mark.parametrize("kind", NO_EXAMPLES)
def test_datasets_of_another_form_cost_nothing(kind):
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own = private(ledger=ledger)
    with pytest.raises(DomainMismatch, match="another form than the probe"):
        own.fit(NO_EXAMPLES[kind])
    assert not ledger.entries()
    assert own.fit(texts(40)).certificate_.verify()


def test_one_text_that_is_shorter_is_named_as_such():
    examples = [{"ids": one if place else one[:8]} for place, one in enumerate(texts(40)["ids"])]
    examples[7]["ids"] = examples[7]["ids"][:5]
    with pytest.raises(DomainMismatch, match="another form than the probe"):
        private().fit(examples)


def test_a_model_that_holds_a_hook_of_its_own_remembers_nothing():
    model = adapted(gpt2(), ["c_attn"], fan_in_fan_out=True)
    model.enable_input_require_grads()
    assert 0.99 < largest_move(private(stir(model)), texts(40)) <= 1 + 1e-4
