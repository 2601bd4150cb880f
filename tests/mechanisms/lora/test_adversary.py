"""Models and losses that make one example move others: refused, or at most one clip, with seeds that all know."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import (  # noqa: E402
    WORDS,
    Twice,
    adapted,
    gpt2,
    largest_move,
    llama,
    next_word,
    small,
    texts,
)
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from ppdp.exceptions import InvalidParameter  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA  # noqa: E402

PUBLIC = {"n_rows": 40, "batch_size": 40, "steps": 2, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
PUBLIC |= {"isolation": None}


def private(model, loss=next_word, **other):
    return PrivateLoRA(model, loss, **{"probe": texts(4, seed=9), **PUBLIC, **other})


class Planted(Twice):
    """A model with something between its layers."""

    def __init__(self, plant, training_only=False):
        super().__init__()
        self.plant, self.training_only = plant, training_only
        self.register_buffer("flag", torch.zeros(1))
        self.count, self.kept, self.lazy = 0, [0.0], nn.Dropout(0.5)
        self.coins, self.numbers = torch.Generator().manual_seed(3), np.random.default_rng(3)
        self.bits, self.seeds = np.random.PCG64(3), np.random.SeedSequence(3)

    def forward(self, ids):
        x = self.layer(self.words(ids))
        return self.head(x if self.training_only and not self.training else self.plant(self, x, ids))


class OwnNorm(nn.modules.batchnorm._BatchNorm):
    def _check_input_dim(self, _):
        pass


CALLS = [0]


def counted(model, x, _):
    model.count += 1
    return x * (model.count % 2)


def flipped(model, x, _):
    model.flag.copy_(1 - model.flag)
    return x + model.flag


def remembered(model, x, _):
    model.kept[0] = 0.5 * model.kept[0] + float(x.detach().mean())
    return x - model.kept[0]


def counted_outside(_, x, __):
    CALLS[0] += 1
    return x * (CALLS[0] % 3)


def count():
    [CALLS.append(CALLS.pop() + 1) for _ in range(1)]


def counted_by_another(_, x, __):
    count()
    return x * (CALLS[0] % 3)


def attention(_, x, __):
    return x + functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1)


def seeded_inside(_, x, __):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return x * torch.bernoulli(torch.full_like(x, 0.5))


def sorted_between(model, x, ids):
    """Examples are independent, and stand in another order in the layer when it is used again."""
    order = ids[:, 0].argsort()
    return torch.tanh(model.layer(x[order]))[order.argsort()]


def is_random_of(x, coin):
    return x * 2 if coin < 0.5 else x


CHANCE = {
    "dropout by hand": lambda m, x, ids: functional.dropout(x, 0.1, training=True),
    "dropout that is not registered": lambda m, x, ids: x * nn.Dropout(0.5)(torch.ones_like(x)),
    "attention with dropout": attention,
    "stochastic depth of torch": lambda m, x, ids: is_random_of(x, float(torch.rand(()))),
    "stochastic depth of Python": lambda m, x, ids: is_random_of(x, random.random()),
    "stochastic depth of NumPy": lambda m, x, ids: is_random_of(x, np.random.rand()),  # noqa: NPY002
    "a generator of its own": lambda m, x, ids: x * torch.rand(x.shape, generator=m.coins),
    "NumPy's, of its own": lambda m, x, ids: is_random_of(x, m.numbers.random()),
    "a child of NumPy's": lambda m, x, ids: is_random_of(x, m.numbers.spawn(1)[0].random()),
    "bits of NumPy's": lambda m, x, ids: is_random_of(x, m.bits.random_raw() / 2**64),
    "seeds of NumPy's": lambda m, x, ids: is_random_of(x, np.random.default_rng(m.seeds.spawn(1)[0]).random()),
    "mixup": lambda m, x, ids: 0.9 * x + 0.1 * x[torch.randperm(len(x))],
    "a seed of its own": seeded_inside,
}
MEMORY = {
    "a count": counted,
    "a buffer that flips": flipped,
    "a running mean": remembered,
    "a global": counted_outside,
    "a global of another function": counted_by_another,
}
MIXTURE = {
    "centred": lambda m, x, ids: x - x.mean(0, keepdim=True),
    "centred a little": lambda m, x, ids: x - 1e-9 * x.mean(0, keepdim=True),
    "centred without a derivative": lambda m, x, ids: x - 1e-2 * x.detach().mean(0, keepdim=True),
    "mixup with the next": lambda m, x, ids: 0.9 * x + 0.1 * x.roll(1, 0),
    "normed": lambda m, x, ids: functional.batch_norm(x.mT, None, None, training=True).mT,
    "scaled by the largest": lambda m, x, ids: x / x.detach().abs().max(),
    "by its place": lambda m, x, ids: x * torch.linspace(1, 2, len(x)).view(-1, 1, 1),
    "another order": sorted_between,
    "full batches only": lambda m, x, ids: x - x.detach().mean(0) if len(x) > 8 else x,
}
PLANTS = {**CHANCE, **MEMORY, **MIXTURE}


@pytest.mark.parametrize("method", ["fa", "m2"])
@pytest.mark.parametrize("plant", PLANTS)
def test_what_mixes_remembers_or_draws_in_evaluation_is_refused(plant, method):
    model = adapted(Planted(PLANTS[plant]), ["layer"])
    with pytest.raises(InvalidParameter, match=r"chance|trace|depends|other examples"):
        private(model, method=method, microbatch=16 if plant in MIXTURE else 1)
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize("plant", sorted(MIXTURE.keys() - {"centred"}))  # of one example, which leaves nothing
def test_what_mixes_a_batch_finds_one_example(plant):
    training = private(adapted(Planted(MIXTURE[plant]), ["layer"]))
    assert 0.99 < largest_move(training, texts(40)) <= 1 + 1e-4


@pytest.mark.parametrize("microbatch", [1, 8])
def test_rows_of_a_layer_that_are_no_examples_are_declared(microbatch):
    """Eight tokens of one of eight examples, given to a layer by themselves: with a microbatch each counts as one's."""

    def chosen(model, x, ids):
        at = ids == WORDS - 1
        return torch.where(at[..., None], torch.zeros_like(x).masked_scatter(at[..., None], model.layer(x[at])), x)

    def loss(model, batch):
        return next_word(model, batch) * (1e-9 + 1e3 * (batch["ids"] == WORDS - 1).any(1))

    probe, examples = ({"ids": texts(n, seed=9)["ids"].clamp(max=WORDS - 2)} for n in (4, 8))
    examples["ids"][2] = WORDS - 1
    model = adapted(Planted(only_at(WORDS - 1, chosen)), ["layer"])
    moved = largest_move(private(model, loss, probe=probe, microbatch=microbatch), examples, removed=(2,))
    assert moved > 2 if microbatch > 1 else 0.99 < moved <= 1 + 1e-4


@pytest.mark.parametrize("plant", PLANTS)
def test_what_does_so_in_training_mode_is_not_trained_with(plant):
    training = private(adapted(Planted(PLANTS[plant], training_only=True), ["layer"]))
    assert training.model.training
    assert 0.99 < largest_move(training, texts(40)) <= 1 + 1e-4


DROPOUTS = {
    "practice": lambda: small("twice", lora_dropout=0.05),
    "half": lambda: small("twice", lora_dropout=0.5),
    "a network in evaluation": lambda: adapted(Twice().eval(), ["layer"], lora_dropout=0.5),
    "the model's": lambda: adapted(gpt2(resid_pdrop=0.5, embd_pdrop=0.5), ["c_attn"], fan_in_fan_out=True),
    "attention's": lambda: adapted(gpt2(attn_pdrop=0.5), ["c_attn"], fan_in_fan_out=True, lora_dropout=0.1),
    "none": lambda: adapted(llama(), ["q_proj", "v_proj"]),
}


@pytest.mark.parametrize("make", DROPOUTS)
def test_no_dropout_moves_more_than_one_clip(make):
    training = private(DROPOUTS[make]())
    modes = [module.training for module in training.model.modules()]
    assert 0.99 < largest_move(training, texts(40)) <= 1 + 1e-3
    assert [module.training for module in training.model.modules()] == modes


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.SyncBatchNorm, nn.LazyBatchNorm1d, OwnNorm])
def test_batch_norms_are_refused_by_their_base_unless_each_example_is_alone(norm):
    model = Planted(lambda m, x, ids: m.norm(x))
    model.norm = norm() if norm is nn.LazyBatchNorm1d else norm(8, track_running_stats=norm is not OwnNorm)
    model, lazy = adapted(model, ["layer"]), norm is nn.LazyBatchNorm1d
    with pytest.raises(InvalidParameter, match="not loaded" if lazy else "batch-norm"):
        private(model, microbatch=1 if lazy else 16)
    assert lazy or largest_move(private(model), texts(40)) <= 1 + 1e-4


def test_a_module_that_stays_in_training_mode():
    class Stubborn(Twice):
        def forward(self, ids):
            self.train()
            return super().forward(ids)

    with pytest.raises(InvalidParameter, match="evaluation mode"):
        private(adapted(Stubborn(), ["layer"]))

    class Deaf(nn.Dropout):
        def train(self, mode=True):
            return super().train(True)

    model = Twice()
    model.words = nn.Sequential(model.words, Deaf(0.5))
    assert largest_move(private(adapted(model, ["layer"])), texts(40)) <= 1 + 1e-4


@pytest.mark.parametrize("made", ["model", "autocast", "inside"])
def test_coarse_numbers_are_computed_alone(made):
    def inside(model, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return next_word(model, batch).float()

    model = small("twice").bfloat16() if made == "model" else small("twice")
    loss = inside if made == "inside" else next_word
    with torch.autocast("cpu", torch.bfloat16, enabled=made == "autocast"):
        with pytest.raises(InvalidParameter, match="microbatch=1"):
            private(model, loss, microbatch=16)
        training = private(model, loss)
        assert 0.99 < largest_move(training, texts(40)) <= 1 + 1e-6
    if made == "autocast":
        with pytest.raises(InvalidParameter, match="autocast"):
            training.fit(texts(40))
    else:
        assert training.fit(texts(40)).certificate_.verify()


def only_at(word, plant):
    """What no probe shows: it happens where a private example has a certain word."""
    return lambda m, x, ids: plant(m, x, ids) if (ids == word).any() else x


@pytest.mark.parametrize("plant", sorted({*CHANCE, *MEMORY}))
def test_what_only_private_examples_bring_about_moves_at_most_one_clip(plant):
    model, examples = adapted(Planted(only_at(WORDS - 1, PLANTS[plant])), ["layer"]), texts(3)
    probe = {"ids": texts(3)["ids"].clamp(max=WORDS - 2)}
    examples["ids"][:, 3] = WORDS - 1
    CALLS[0] = 0  # as a factor of 0 would leave no gradient
    training = private(model, probe=probe, isolation="process")
    assert 0.99 < largest_move(training, examples, removed=(0,)) <= 1 + 1e-9


def test_full_gradients_move_by_no_more_than_one_clip():
    """Of which a projection shows its part: all of it, if it shows all dimensions."""
    model = adapted(gpt2(resid_pdrop=0.5, attn_pdrop=0.5), ["c_attn"], fan_in_fan_out=True)
    training = private(model, method="m2")
    training._plan.question.parameters["rank"] = 16
    sums, layers = training._sums(), training._probed.layers
    sums.projections = lambda: [torch.eye(layer.inputs, dtype=torch.float64) for layer in layers]
    assert 0.99 < largest_move(training, texts(40), sums=sums) <= 1 + 1e-3
