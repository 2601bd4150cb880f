"""What is not covered is refused before anything is spent, and the model is as it was."""

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import Twice, adapted, gpt2, llama, next_word, small, stir, texts  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from ppdp.exceptions import ImpossibleBudget, InvalidParameter  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA  # noqa: E402

PUBLIC = {"n_rows": 60, "batch_size": 20, "steps": 3, "epsilon": 2.0, "delta": 1e-5, "isolation": None}


KWARGS = [7, [], {"lr": 1.0}, {"foreach": True}, {"maximize": True}, {"momentum": "x"}, {"momentum": -1.0}, {"x": 1}]
ODD = {
    "optimizer": ["sgd", 7, None, lambda tensors: None, torch.optim.SparseAdam, torch.optim.LBFGS, "SparseAdam"],
    "optimizer_kwargs": [*KWARGS, {"momentum": float("nan")}, {"nesterov": True}],
    "learning_rate": [-1.0, 0.0, "x", [], [0.1, 0.1], [0.1, 0.1, -1.0], [0.1, 0.1, None], {0: 0.1}, [0.1, 1e39, 0.1]],
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


def scaled(act):
    model = small("twice")
    act(model.base_model.model.layer, model.peft_config["default"])
    return model


class Overlapping(Twice):
    """A layer whose weights lie among other numbers."""

    def __init__(self, beside):
        super().__init__()
        numbers = torch.randn(30, 12) / 4
        self.layer.weight = nn.Parameter(numbers[:12] if beside else numbers[:1].expand(12, 12))
        if beside == "a buffer":
            self.register_buffer("fused", numbers)
        elif beside:
            self.other = nn.Parameter(numbers[6:])


def overlapping(beside):
    return lambda: adapted(Overlapping(beside), ["layer"])


class Proxy:
    """As one of a framework, outside its context."""

    @property
    def __dict__(self):
        raise RuntimeError("no context")


def unseen():
    model = small("twice")
    model.proxy = Proxy()
    return model


M2 = {"method": "m2", "rank": 3}


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
    "no rank": (lambda: small("twice"), {"method": "m2", "rank": 0}, "rank must be an integer"),
    "a rate of 10^39": (lambda: small("twice"), {"learning_rate": 1e39}, "a smaller learning_rate"),
    "tied weights": (lambda: adapted(llama(), ["lm_head"]), {"method": "m2"}, "are shared"),
    "weights that overlap": (overlapping("a parameter"), M2, "are shared.*other"),
    "weights in a buffer": (overlapping("a buffer"), M2, "are shared.*fused"),
    "weights that are one row": (overlapping(""), M2, "in several places"),
    "a scaled adapter": (lambda: scaled(lambda layer, _: layer.scale_layer(3.0)), {}, "scale"),
    "another alpha": (lambda: scaled(lambda _, config: setattr(config, "lora_alpha", 60)), {}, "scale"),
    "another rank of it": (lambda: scaled(lambda _, config: config.__dict__.update(r=2, lora_alpha=4)), {}, "scale"),
    "used by hand": (lambda: adapted(Functional(), ["layer"]), {"method": "m2"}, "used elsewhere"),
    "a used adapter": (lambda: stir(small("twice")), {"method": "m2"}, "not fresh"),
    "no examples": (lambda: small("twice"), {"n_rows": 0}, "n_rows"),
    "large batches": (lambda: small("twice"), {"batch_size": 61}, "batch_size"),
    "no clip": (lambda: small("twice"), {"max_grad_norm": 0.0}, "max_grad_norm"),
    "a ledger of words": (lambda: small("twice"), {"ledger": "mine"}, "ledger"),
    "an optimizer with a closure": (lambda: small("twice"), {"optimizer": torch.optim.LBFGS}, "optimizer must be"),
    "a base that nobody has again": (
        lambda: small("twice", init_lora_weights="pissa_niter_2"),
        {},
        "pissa_niter_2.*changes the base",
    ),
    "names that are no words": (lambda: small("twice"), {"probe": {**texts(2), 0: torch.zeros(2)}}, "at least two"),
    "bits": (lambda: small("twice"), {"probe": {"x": torch.empty(2, dtype=torch.bits8)}}, "at least two"),
    "what cannot be looked at": (unseen, {}, "cannot be looked at"),
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


NARROW = [torch.zeros(3, 4, dtype=torch.uint8).view(getattr(torch, f"uint{bits}")).T for bits in range(1, 8)]
NO_ORDINARY = [torch.eye(3).to_sparse(), torch.zeros(3, device="meta"), torch.empty(3, dtype=torch.bits8), *NARROW]


@pytest.mark.parametrize("values", NO_ORDINARY, ids=lambda one: f"{one.dtype}, {one.device}")
def test_buffers_that_are_no_ordinary_tensors(values):
    model = small("twice")
    model.register_buffer("x", values)
    with pytest.raises(InvalidParameter, match=r"x is a sparse.*or not loaded"):
        PrivateLoRA(model, next_word, probe=texts(2), **PUBLIC)


AROUND = {
    "a gradient": (torch.func.grad, "torch.func"),
    "a map": (torch.func.vmap, "torch.func"),
    "without in-place operations": (torch.func.functionalize, "torch.func"),
    "a graph": (lambda act: torch.compile(act, backend="eager"), "torch.compile"),
    "a trace": (lambda act: lambda x: torch.jit.trace(act, x, check_trace=False), "torch.jit.trace"),
    "inference": (torch.inference_mode(), "torch.inference_mode"),
}


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
@pytest.mark.parametrize("around", AROUND)
def test_inside_of_what_changes_operations_nothing_begins(around):
    """And outside of it the same training goes on."""
    inside, words = AROUND[around]
    model, probe, examples = small("twice"), texts(2), texts(9)
    own = PrivateLoRA(small("twice"), next_word, probe=probe, **PUBLIC)
    for act in (lambda: PrivateLoRA(model, next_word, probe=probe, **PUBLIC), lambda: own.fit(examples)):
        with pytest.raises(InvalidParameter, match=f"inside of {words}"):
            inside(lambda x, act=act: (act(), x.sum())[1])(torch.ones(3))
    assert own.fit(examples).certificate_.verify()


def test_a_hook_of_all_optimizers():
    """It would be given ppdp's own, with the weights that nobody else holds."""
    hook = register_optimizer_step_post_hook(lambda *_: None)
    try:
        with pytest.raises(InvalidParameter, match="hook of all optimizers"):
            PrivateLoRA(small("twice"), next_word, probe=texts(2), **PUBLIC)
    finally:
        hook.remove()


@pytest.mark.parametrize(
    "other", [{"use_rslora": True}, {"rank_pattern": {"c_attn": 3}, "alpha_pattern": {"h.0.attn.c_attn": 9}}]
)
def test_scales_that_a_configuration_gives(other):
    assert PrivateLoRA(small("gpt2", **other), next_word, probe=texts(2), **PUBLIC).plan_
