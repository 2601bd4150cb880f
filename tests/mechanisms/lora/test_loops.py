"""What ordinary optimizers, loops and datasets bring along has no way into a training, or is refused for nothing.

Between two steps runs nothing of a user's but a handler of logs, another thread, or what Python calls by itself: all of
that stands here as :func:`small_models.after_step`.
"""

import logging
import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

import math  # noqa: E402

from small_models import (  # noqa: E402
    adapted,
    after_step,
    gpt2,
    largest_move,
    next_word,
    small,
    stir,
    texts,
    trained_of,
)
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.optim import optimizer as optimizers  # noqa: E402
from torch.utils.data import TensorDataset, random_split  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, certified  # noqa: E402
from ppdp.mechanisms.lora.gradients import FullGradients  # noqa: E402

PUBLIC = {"n_rows": 40, "batch_size": 40, "steps": 3, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
PUBLIC |= {"isolation": None}


def private(model=None, loss=next_word, **other):
    model = small("twice") if model is None else model
    return PrivateLoRA(model, loss, **{"probe": texts(4, seed=9), **PUBLIC, **other})


def stop():
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
@pytest.mark.parametrize("method", ["fa", "m2"])
def test_momentum_of_a_failed_training_is_in_no_other(name, method):
    """Behind a training that failed, another one learns to the last bit what it learns on a fresh model."""
    given = {"optimizer": name, "optimizer_kwargs": {"weight_decay": 0.1}, "method": method, "random_state": 3}
    given["optimizer_kwargs"] |= {"momentum": 0.9} if name != "Adam" else {}
    model, learned = small("twice"), []
    with after_step(stop, number=2), pytest.raises(KeyboardInterrupt):
        private(model, **given).fit(texts(9, seed=8))
    for one in (model, small("twice")):
        private(one, **given).fit(texts(9))
        learned.append([weight.detach() for weight in one.parameters()])
    assert all(map(torch.equal, *learned))


def b_of(model):
    return model.base_model.model.layer.lora_B["default"]


@pytest.mark.parametrize("when", ["register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"])
def test_hooks_of_all_optimizers_are_hooks(when):
    own, reached, register = private(), [], getattr(optimizers, when)
    handle = register(lambda optimizer, *_: reached.append(optimizer))
    try:
        with pytest.raises(InvalidParameter, match="hooks changed"):
            own.fit(texts(9))
    finally:
        handle.remove()
    assert not reached
    handles = []
    with after_step(lambda: handles.append(register(lambda *_: None))), pytest.raises(StageFailed, match="hooks"):
        own.fit(texts(9))
    handles.pop().remove()


def stepped(own):
    """What a loop of one's own does with a batch."""
    (weight,) = trained_of(own)
    weight.requires_grad_(True)
    next_word(own.model, texts(9)).mean().backward()
    torch.optim.SGD([weight], lr=1.0).step()


def replaced(matrix):
    def change(own):
        linear = getattr(own._probed.layers[0].module, matrix)["default"]
        linear.weight = nn.Parameter(linear.weight.detach() + 1)

    return change


def layer_of(own):
    return own._probed.layers[0].module


def frozen(module):
    module.forward = lambda x: x.detach()


MEANWHILE = {
    "a step of their own": stepped,
    "another A": replaced("lora_A"),
    "another B": replaced("lora_B"),
    "no adapter": lambda own: own.model.base_model.disable_adapter_layers(),
    "an adapter that is gone": lambda own: own.model.delete_adapter("default"),
    "a merged adapter": lambda own: own.model.merge_adapter(),
    "another scale": lambda own: layer_of(own).set_scale("default", 7.0),
    "no active adapter": lambda own: layer_of(own).__setattr__("_active_adapter", []),
    "what is learned": lambda own: own.model.base_model.model.head.weight.requires_grad_(True),
    "what is not": lambda own: b_of(own.model).weight.requires_grad_(False),
    "float64": lambda own: own.model.double(),
    "memory elsewhere": lambda own: b_of(own.model).weight.__setattr__("data", b_of(own.model).weight.data.clone()),
    "no numbers": lambda own: own.model.to("meta"),
    "another pass": lambda own: frozen(own.model.base_model.model.layer),
    "another module": lambda own: own.model.base_model.model.__setattr__("head", nn.Linear(12, 40)),
    "a head that learned": lambda own: own.model.base_model.model.head.weight.data.mul_(2),
    "a hook": lambda own: b_of(own.model).register_forward_hook(lambda m, x, y: y * 0),
    "A": lambda own: layer_of(own).lora_A["default"].weight.data.zero_(),
}


@pytest.mark.parametrize("when", ["before", "first", "last"])
@pytest.mark.parametrize("change", MEANWHILE)
def test_what_changes_the_model_ends_the_training(change, when):
    """For nothing before the charge; behind it, nothing of it is in a certificate, and nothing can be exported."""
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own, examples = private(ledger=ledger, method="fa"), texts(9)
    if when == "before":
        MEANWHILE[change](own)
        with pytest.raises(InvalidParameter, match="changed since the probe"):
            own.fit(examples)
        assert not ledger.entries()
        return
    with after_step(lambda: MEANWHILE[change](own), number=1 if when == "first" else 3), pytest.raises(StageFailed):
        own.fit(examples)
    assert [entry.status for entry in ledger.entries()] == ["failed"]
    assert own.certificate_ is None
    with pytest.raises(InvalidParameter, match="ended by an error"):
        own.export("nowhere", conditional=True)


def gradients(own):
    for one in own.model.parameters():
        one.grad = torch.ones_like(one)


@pytest.mark.parametrize("change", [gradients, lambda own: own.model.eval(), lambda own: own.model.train(False)])
def test_what_a_step_does_not_read_changes_nothing_of_it(change):
    """It is seen, and ends the training, or does no harm: what is released is the same."""
    released = []
    for act in (lambda own: None, change):
        own = private(random_state=3)
        act(own)
        own.fit(texts(9))
        released.append(own.certificate_.record.released.sha256)
    assert len(set(released)) == 1


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_a_training_in_which_nothing_could_learn_costs_nothing(mode):
    own, ledger = private(), Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own.ledger = ledger
    with mode():
        if mode is torch.no_grad:  # which a step does not follow
            assert own.fit(texts(9)).certificate_.verify()
        else:
            with pytest.raises(InvalidParameter):
                own.fit(texts(9))
            assert not ledger.entries()


def test_a_loss_that_became_another_one_costs_nothing():
    switch = threading.local()
    switch.on = True
    own = private(loss=lambda model, batch: next_word(model, batch) * switch.on)
    switch.on = False
    with pytest.raises(InvalidParameter, match="another gradient than the probe saw"):
        own.fit(texts(9))
    assert own._charged is None
    switch.on = True
    assert own.fit(texts(9)).certificate_.verify()


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_a_plan_that_somebody_writes_into_is_not_the_one_that_is_trained(method, tmp_path):
    own = private(method=method)
    own.plan_.question.parameters.update(clip=1e6, batch_size=1, rank=1, steps=9)
    own.fit(texts(9))
    assert certified(own.export(tmp_path / "adapter", conditional=True)).record.mechanism.parameters["clip"] == 1e-3


@pytest.mark.parametrize("clip", [1e-180, 1e-101, 1e101])
def test_clips_whose_squares_float64_cannot_hold_are_refused(clip):
    with pytest.raises(InvalidParameter, match="max_grad_norm must be"):
        private(max_grad_norm=clip)


def test_ghost_norms_whose_inner_products_vanish_are_no_less():
    layer = private(method="m2")._probed.layers[0]
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


class Own(torch.Tensor):
    """Which looks like torch's own class every other time."""

    looks = 0

    def detach(self):
        Own.looks += 1
        return super().detach().as_subclass(torch.Tensor if Own.looks % 2 else Own)


IDS = texts(9)["ids"]
NO_TABLES = {
    "tuples": [(one, 1) for one in IDS],
    "a part of a TensorDataset": random_split(TensorDataset(IDS), [5, 4])[0],
    "tensors": list(IDS),
    "named tensors, one by one": [{"ids": one} for one in IDS],
    "what makes them": lambda: {"ids": IDS},
    "an iterator": iter([{"ids": IDS}]),
}


def freed(tensor):
    """Its numbers are elsewhere, as sharded training keeps them."""
    without = tensor.clone()
    without.untyped_storage().resize_(0)
    return without


OTHER_FORMS = {
    "no tensors": {"ids": None},
    "lists": {"ids": IDS.tolist()},
    "arrays": {"ids": IDS.numpy()},
    "another type": {"ids": IDS.int()},
    "another length": {"ids": IDS[:, :5]},
    "one number": {"ids": torch.tensor(3)},
    "a column more": {"ids": IDS, "labels": IDS[:, 0]},
    "no column": {},
    "no numbers": {"ids": IDS.to("meta")},
    "sparse": {"ids": IDS.to_sparse()},
    "numbers that were freed": {"ids": freed(IDS)},
    "a tensor that runs code": {"ids": IDS.as_subclass(Own)},
}


@pytest.mark.parametrize("kind", [*NO_TABLES, *OTHER_FORMS])
def test_examples_of_another_form_cost_nothing(kind):
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own = private(ledger=ledger)
    error, words = (InvalidInput, "something else") if kind in NO_TABLES else (DomainMismatch, "another form")
    with pytest.raises(error, match=words):
        own.fit({**NO_TABLES, **OTHER_FORMS}[kind])
    assert not ledger.entries()
    assert own.fit(texts(9)).certificate_.verify()


LOG = logging.getLogger("a loss of somebody")


def told(model, batch):
    LOG.debug("a step")
    return next_word(model, batch)


def test_a_log_is_no_memory(tmp_path):
    """What ppdp itself writes into it ends nothing."""
    root, handler = logging.getLogger(), logging.FileHandler(tmp_path / "log")
    root.addHandler(handler)
    try:
        with after_step(lambda: None):
            assert private(loss=told).fit(texts(9)).certificate_.verify()
    finally:
        root.removeHandler(handler)
        handler.close()


def test_a_model_that_holds_a_hook_of_its_own_remembers_nothing():
    model = adapted(gpt2(), ["c_attn"], fan_in_fan_out=True)
    model.enable_input_require_grads()
    assert 0.99 < largest_move(private(stir(model)), texts(9)) <= 1 + 1e-4
