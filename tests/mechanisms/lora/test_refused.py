"""What is not covered is refused before anything is spent, and the model is as it was."""

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import Twice, adapted, gpt2, llama, next_word, small, stir, texts  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from ppdp.exceptions import ImpossibleBudget, InvalidParameter  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA  # noqa: E402

PUBLIC = {"n_rows": 60, "batch_size": 20, "steps": 3, "epsilon": 2.0, "delta": 1e-5}


KWARGS = [7, [], {"lr": 1.0}, {"foreach": True}, {"maximize": True}, {"momentum": "x"}, {"momentum": -1.0}, {"x": 1}]
ODD = {
    "optimizer": ["sgd", 7, None, lambda tensors: None, torch.optim.SparseAdam, torch.optim.LBFGS, "SparseAdam"],
    "optimizer_kwargs": [*KWARGS, {"momentum": float("nan")}, {"nesterov": True}],
    "learning_rate": [-1.0, 0.0, "x", [], [0.1, 0.1], [0.1, 0.1, -1.0], [0.1, 0.1, None], {0: 0.1}],
    "steps": [None, "x", 0],
    "random_state": ["x", -1],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, odd in ODD.items() for value in odd])
def test_what_no_training_takes(name, value):
    with pytest.raises(InvalidParameter):
        PrivateLoRA(small("twice"), next_word, probe=texts(2), **{**PUBLIC, name: value})


class Normed(Twice):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, ids):
        return self.head(self.norm(self.layer(self.words(ids))))


class Mixing(Twice):
    """The mean of a batch, hidden in the middle of a model."""

    def forward(self, ids):
        x = self.layer(self.words(ids))
        return self.head(x - 0.1 * x.mean(0, keepdim=True))


class MixingBefore(Twice):
    """The mean of a batch, in front of everything that learns."""

    def forward(self, ids):
        x = self.words(ids)
        return self.head(self.layer(x - x.mean(0, keepdim=True)))


class Chancy(Twice):
    def forward(self, ids):
        return self.head(functional.dropout(self.layer(self.words(ids)), 0.5, training=True))


class Functional(Twice):
    """The weights of a layer, used once more by hand."""

    def forward(self, ids):
        x = self.layer(self.words(ids))
        return self.head(x + functional.linear(x, self.layer.base_layer.weight))


def second_adapter():
    from peft import LoraConfig

    model = small("twice")
    model.add_adapter("other", LoraConfig(target_modules=["layer"], r=2))
    return model


def trains_the_head():
    model = small("twice")
    model.base_model.model.head.weight.requires_grad_(True)
    return model


def merged():
    model = small("twice")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.merge_adapter()
    return model


def mean_loss(model, batch):
    return next_word(model, batch).mean()


def relative(model, batch):
    """Every loss, less the mean of all."""
    losses = next_word(model, batch)
    return losses - losses.mean() / 2


TOGETHER = {"microbatch": 16}
CASES = {
    "no PEFT": (gpt2, {}, "not one of PEFT"),
    "a second adapter": (second_adapter, {}, "more than one adapter"),
    "modules_to_save": (lambda: adapted(Twice(), ["layer"], modules_to_save=["head"]), {}, "modules_to_save"),
    "trained biases": (lambda: adapted(Twice(), ["layer"], bias="lora_only"), {}, "biases"),
    "a bias of B": (lambda: adapted(Twice(), ["layer"], lora_bias=True), {}, "biases"),
    "DoRA": (lambda: adapted(Twice(), ["layer"], use_dora=True), {}, "variant"),
    "an embedding": (lambda: adapted(Twice(), ["words"]), {}, "Embedding.*is not covered"),
    "a trained head": (trains_the_head, {}, "head.weight is trained"),
    "a merged adapter": (merged, {}, "merged"),
    "batch-norm": (lambda: adapted(Normed(), ["layer"]), TOGETHER, "batch-norm"),
    "a mean in the model": (lambda: adapted(Mixing(), ["layer"]), TOGETHER, "depends on the other examples"),
    "a mean before": (lambda: adapted(MixingBefore(), ["layer"]), TOGETHER, "depends on the other examples"),
    "dropout by hand": (lambda: adapted(Chancy(), ["layer"]), {}, "on chance"),
    "a mean of losses": (lambda: small("twice"), {"loss": mean_loss}, "one number for every example"),
    "losses of all": (lambda: small("twice"), {"loss": relative, **TOGETHER}, "depends on the other examples"),
    "NaN": (lambda: small("twice"), {"loss": lambda m, b: next_word(m, b) * float("nan")}, "not finite"),
    "no gradient": (lambda: small("twice"), {"loss": lambda m, b: next_word(m, b).detach()}, "no gradient"),
    "a loss that fails": (lambda: small("twice"), {"loss": lambda m, b: m(b["x"])}, "KeyError"),
    "one example": (lambda: small("twice"), {"probe": texts(1)}, "at least two"),
    "no probe": (lambda: small("twice"), {"probe": None}, "at least two"),
    "another rank": (lambda: small("twice"), {"rank": 5}, "not 5"),
    "no such method": (lambda: small("twice"), {"method": "m1"}, "method"),
    "a large rank": (lambda: small("twice"), {"method": "m2", "rank": 12}, "no less than the 12 inputs"),
    "tied weights": (lambda: adapted(llama(), ["lm_head"]), {"method": "m2"}, "are shared"),
    "used by hand": (lambda: adapted(Functional(), ["layer"]), {"method": "m2"}, "used elsewhere"),
    "a used adapter": (lambda: stir(small("twice")), {"method": "m2"}, "not fresh"),
    "no examples": (lambda: small("twice"), {"n_rows": 0}, "n_rows"),
    "large batches": (lambda: small("twice"), {"batch_size": 61}, "batch_size"),
    "no clip": (lambda: small("twice"), {"clip": 0.0}, "clip"),
    "a ledger of words": (lambda: small("twice"), {"ledger": "mine"}, "ledger"),
    "an optimizer with a closure": (lambda: small("twice"), {"optimizer": torch.optim.LBFGS}, "optimizer must be"),
    "a word for a rate": (lambda: small("twice"), {"learning_rate": -1.0}, "learning_rate"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case):
    make, given, words = CASES[case]
    torch.manual_seed(0)
    model = make()
    before = {name: (one.clone(), one.requires_grad) for name, one in model.named_parameters()}
    buffers = {name: one.clone() for name, one in model.named_buffers()}
    named = {"model": model, "loss": next_word, "probe": texts(2), **PUBLIC, **given}
    with pytest.raises(InvalidParameter, match=words):
        PrivateLoRA(**named)
    assert all(torch.equal(one, before[name][0]) for name, one in model.named_parameters())
    assert all(one.requires_grad == before[name][1] and one.grad is None for name, one in model.named_parameters())
    assert all(torch.equal(one, buffers[name]) for name, one in model.named_buffers())
    assert all(module.training for module in model.modules()) or case == "no PEFT"
    assert not any(module._forward_hooks for module in model.modules())


def test_budgets_that_mean_nothing():
    for wrong in ({"delta": 0.0}, {"delta": 0.5}, {"epsilon": 0.0}, {"delta": 1e-17}):
        with pytest.raises(ImpossibleBudget):
            PrivateLoRA(small("twice"), next_word, probe=texts(2), **{**PUBLIC, **wrong})
