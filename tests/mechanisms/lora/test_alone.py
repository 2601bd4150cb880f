"""What mixes private examples and no probe sees finds one example in each call; and examples are as they are given."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, Twice, adapted, largest_move, next_word, small, texts  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import ExportError, InvalidParameter, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, sums, training  # noqa: E402

PUBLIC = {"n_rows": 40, "batch_size": 40, "steps": 3, "epsilon": 2.0, "delta": 1e-5, "clip": 1e-3}


def private(model=None, loss=next_word, **other):
    model = small("twice") if model is None else model
    return PrivateLoRA(model, loss, **{"probe": texts(4, seed=9), **PUBLIC, **other})


def masked(model, batch):
    """Losses over the mean length of all texts of the batch, which in the probe are all as long."""
    losses = functional.cross_entropy(model(batch["ids"])[:, :-1].mT, batch["ids"][:, 1:], reduction="none")
    return (losses * batch["mask"][:, 1:]).sum(1) / batch["mask"].sum(1).float().mean()


class Planted(Twice):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant

    def forward(self, ids):
        return self.head(self.plant(self, self.layer(self.words(ids))))


class Switched:
    mean = False

    def __call__(self, model, batch):
        losses = next_word(model, batch)
        return losses * losses.detach().mean() if self.mean else losses


def with_masks():
    mask = torch.ones(40, 8, dtype=torch.long)
    mask[1:, 3:] = 0
    return private(loss=masked, probe={**texts(4), "mask": mask[[0] * 4]}), {**texts(40), "mask": mask}


def at_some_sizes():
    plant = lambda m, x: x - x.detach().mean(0) if len(x) in (16, 11) else x  # noqa: E731
    return private(adapted(Planted(plant), ["layer"])), texts(40)


def behind_a_fresh_adapter():
    model = small("twice")
    b = model.base_model.model.layer.lora_B["default"]
    b.register_forward_hook(lambda m, x, y: y / (1 + y.detach().abs().max()))
    return private(model), texts(40)


def switched_later():
    loss = Switched()
    own = private(loss=loss)
    loss.mean = True
    return own, texts(40)


class Ordered(Twice):
    """Puts examples in order, the shortest or the longest first, and does not put all of it back."""

    def __init__(self, descending):
        super().__init__()
        self.descending = descending

    def forward(self, ids):
        order = (ids > 0).sum(1).argsort(stable=True, descending=self.descending)
        return self.head(torch.tanh(self.layer(self.words(ids[order])))[order.argsort()])


def in_order(descending):
    examples = texts(40)["ids"].clamp(min=1)
    for place in range(40):
        examples[place, 1 + place % 8 :] = 0
    probe = {"ids": texts(4, seed=9)["ids"].clamp(min=1)}
    return private(adapted(Ordered(descending), ["layer", "head"]), probe=probe), {"ids": examples}


def trimmed(model, batch):
    losses = next_word(model, batch)
    far = losses.detach() - losses.detach().mean()
    return torch.where(far > 3 * far.square().mean().sqrt(), 0.0, losses)


def hardest(model, batch):
    losses = next_word(model, batch)
    return torch.where(losses >= losses.detach().topk(min(15, len(losses))).values[-1], losses, 0.0)


def bounded(model, x):
    """Gradients of a whole batch are bounded together."""
    if x.requires_grad:
        x.register_hook(lambda g: g * (0.01 / g.norm()).clamp(max=1.0))
    return x


MIXED = {
    "gradients that are bounded": lambda: (private(adapted(Planted(bounded), ["layer"])), texts(40)),
    "the mean of masks": with_masks,
    "some sizes only": at_some_sizes,
    "behind a fresh adapter": behind_a_fresh_adapter,
    "a loss that is switched": switched_later,
    "the shortest first": lambda: in_order(False),
    "the longest first": lambda: in_order(True),
    "outliers left out": lambda: (private(loss=trimmed), texts(40)),
    "the hardest alone": lambda: (private(loss=hardest), texts(40)),
}


@pytest.mark.parametrize("mixed", MIXED)
def test_what_the_probe_cannot_show_mixes_nothing(mixed):
    own, examples = MIXED[mixed]()
    assert 0.99 < largest_move(own, examples, removed=(0, 7, 39)) <= 1 + 1e-4


def test_saved_tensors_that_are_packed_together():
    own = private()

    def pack(x):
        return (x * 4 / x.abs().max()).round() * x.abs().max() / 4 if x.is_floating_point() else x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        assert largest_move(own, texts(40)) <= 1 + 1e-4


@pytest.mark.parametrize("examples", [texts(40), [{"ids": one} for one in texts(40)["ids"]]])
def test_a_call_is_given_one_example_and_no_memory_of_others(examples, monkeypatch):
    given, run = [], sums.backward

    def seen(model, loss, found, batch):
        given.extend((tuple(one.shape), one.untyped_storage().nbytes()) for one in batch.values())
        return run(model, loss, found, batch)

    monkeypatch.setattr(sums, "backward", seen)
    private(steps=1).fit(examples)
    assert len(given) == 42  # the first made-up one before and behind them
    assert set(given) == {((1, 8), 64)}


def test_outliers_of_a_batch_are_ones_in_the_probe():
    for loss in (trimmed, hardest):
        with pytest.raises(InvalidParameter, match="depends on the other"):
            private(loss=loss, microbatch=16)


def test_other_modules_and_hooks_of_all_modules_are_others():
    own = private()
    hook = nn.modules.module.register_module_forward_hook(lambda m, x, y: None)
    try:
        with pytest.raises(InvalidParameter, match="hooks"):
            own.fit(texts(40))
    finally:
        hook.remove()
    inner = own.model.base_model.model
    inner.words = nn.Sequential(inner.words)
    with pytest.raises(InvalidParameter, match="modules"):
        own.fit(texts(40))


@pytest.mark.parametrize("microbatch", [1, 16])
def test_a_loss_may_fill_what_it_is_given(microbatch):
    def filling(model, batch):
        batch["ids"].add_(1).clamp_(max=WORDS - 1)
        return next_word(model, {"ids": batch.pop("ids")})

    def pure(model, batch):
        return next_word(model, {"ids": (batch["ids"] + 1).clamp(max=WORDS - 1)})

    released = []
    for loss in (filling, pure):
        own = private(loss=loss, microbatch=microbatch, random_state=3)
        own.fit(texts(40))
        released.append(own._layers[0].trained.detach().clone())
    assert torch.equal(*released)


class Refilled:
    """Gives every example in the same memory."""

    def __init__(self):
        self.ids, self.memory = texts(40)["ids"].numpy(), np.zeros(8, dtype=np.int64)

    def __len__(self):
        return 40

    def __getitem__(self, place):
        self.memory[:] = self.ids[place]
        return {"ids": self.memory}


class Drawing(dict):
    def __getitem__(self, name):
        return torch.where(torch.rand(40, 8) < 0.3, 0, super().__getitem__(name))


def test_examples_are_as_they_are_given():
    own = private()
    assert torch.equal(next(own.batches(Refilled()))["ids"], texts(40)["ids"])
    own, drawing = private(), Drawing(texts(40))
    batches = own.batches(drawing)
    before = torch.get_rng_state()
    own.step(first := next(batches))
    torch.set_rng_state(before)
    torch.rand(3)
    assert torch.equal(first["ids"], next(batches)["ids"])  # all 40, in one order


STOP = []


class Writing(Twice):
    def forward(self, ids):
        if STOP:
            self.head.weight.data += 1.0
            raise STOP.pop()
        return super().forward(ids)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_model_that_changed_and_stopped_is_not_trained_again(error):
    own = private(adapted(Writing(), ["layer"]))
    batch = next(own.batches(texts(40)))
    STOP.append(error())
    with pytest.raises((StageFailed, KeyboardInterrupt)):
        own.step(batch)
    with pytest.raises(InvalidParameter, match="trained on private examples before"):
        private(own.model)


def test_an_interrupt_while_the_adapter_is_made(monkeypatch):
    own, make = private(method="m2"), training.make_adapter
    own.step(next(own.batches(texts(40))))

    def interrupted(*given):
        make(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "make_adapter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        own.finish()
    with pytest.raises(InvalidParameter, match="trained on private examples before"):
        private(own.model)


def test_an_interrupt_behind_the_certificate(monkeypatch):
    """The whole is released: what interrupts comes out, and nothing is called a failure."""
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own = private(ledger=ledger, dataset="texts", steps=1)
    batches = own.batches(texts(40))
    own.step(next(batches))
    settle = type(own._charged).settle

    def interrupted(charge, status):
        settle(charge, status)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(own._charged), "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        own.finish()
    assert [entry.status for entry in ledger.entries()] == ["released"]
    assert own.finish().verify()


@pytest.mark.parametrize("probe", ["nested", "sparse", "checkpoint"])
def test_strange_tensors_and_checkpoints_are_refused_by_name(probe):
    model, given = None, {"nested": None, "sparse": torch.eye(4).to_sparse()}
    given["nested"] = torch.nested.nested_tensor([torch.randn(n) for n in (1, 2, 3, 4)], layout=torch.jagged)
    if probe == "checkpoint":
        plant = lambda m, x: checkpoint(lambda z: torch.tanh(m.layer(z)), x, use_reentrant=True)  # noqa: E731
        model = adapted(Planted(plant), ["layer"])
    other = {} if model else {"other": given[probe]}
    with pytest.raises(InvalidParameter, match="autograd stopped" if model else "probe must be"):
        private(model, probe={**texts(4, seed=9), **other})


class Experiment:
    """Holds its loss and its training, as a class for experiments does."""

    def __init__(self):
        self.training = private(loss=self.loss)

    def loss(self, model, batch):
        return next_word(model, batch)


def test_a_loss_may_know_its_training():
    own = Experiment().training
    assert own.fit(texts(40)).certificate_.verify()


@pytest.mark.parametrize("change", [lambda m: m.delete_adapter("default"), lambda m: m.to("meta")])
def test_an_adapter_that_is_gone_is_not_exported(change, tmp_path):
    own = private(steps=1).fit(texts(40))
    change(own.model)
    with pytest.raises(ExportError, match="has not the adapter"):
        own.export(tmp_path / "adapter", conditional=True)
