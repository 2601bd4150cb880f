"""What mixes private examples and no probe sees finds one example in each call; and examples are as they are given."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, Twice, adapted, after_step, largest_move, next_word, small, texts, trained_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import InvalidParameter, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, certified, sums, training  # noqa: E402
from ppdp.privacy.ledger.fit_charging import FitCharge  # noqa: E402

PUBLIC = {"n_rows": 40, "batch_size": 40, "steps": 3, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
PUBLIC |= {"isolation": None}


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


def with_masks():
    mask = torch.ones(40, 8, dtype=torch.long)
    mask[1:, 3:] = 0
    return private(loss=masked, probe={**texts(4), "mask": mask[[0] * 4]}), {**texts(40), "mask": mask}


def trimmed(model, batch):
    losses = next_word(model, batch)
    far = losses.detach() - losses.detach().mean()
    return torch.where(far > 3 * far.square().mean().sqrt(), 0.0, losses)


def hardest(model, batch):
    losses = next_word(model, batch)
    return torch.where(losses >= losses.detach().topk(min(15, len(losses))).values[-1], losses, 0.0)


MIXED = {
    "the mean of masks": with_masks,
    "outliers left out": lambda: (private(loss=trimmed), texts(40)),
    "the hardest alone": lambda: (private(loss=hardest), texts(40)),
}


@pytest.mark.parametrize("mixed", MIXED)
def test_what_the_probe_cannot_show_mixes_nothing(mixed):
    own, examples = MIXED[mixed]()
    assert 0.99 < largest_move(own, examples, removed=(0, 7, 39)) <= 1 + 1e-4


class Routed(Twice):
    """Each token goes to one of three layers, some of which see none of an example."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(12, 12) for _ in range(3))

    def forward(self, ids):
        x, y = self.words(ids), torch.zeros(*ids.shape, 12)
        for place, expert in enumerate(self.experts):
            y = torch.index_put(y, (ids % 3 == place,), expert(x[ids % 3 == place]))
        return self.head(y)


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_all_that_a_layer_sees_in_a_call_is_of_its_one_example(method):
    """Tokens without an example's dimension, also fewer and more in a layer than the probe has there."""
    model, examples = adapted(Routed(), ["experts.0", "experts.1", "experts.2"]), texts(12)
    examples["ids"][0], examples["ids"][7] = 3, 4
    with pytest.raises(InvalidParameter, match="first dimension"):
        private(model, microbatch=2)
    own = private(model, method=method, steps=1)
    if method == "fa":
        assert 0.99 < largest_move(own, examples) <= 1 + 1e-4
    assert own.fit(examples).certificate_.verify()


def test_a_call_is_given_one_example_and_no_memory_of_others(monkeypatch):
    given, run = [], sums.backward

    def seen(model, loss, found, batch):
        given.extend((tuple(one.shape), one.untyped_storage().nbytes()) for one in batch.values())
        return run(model, loss, found, batch)

    monkeypatch.setattr(sums, "backward", seen)
    private(steps=1).fit(texts(40))
    assert len(given) == 42  # the first made-up one before and behind them
    assert set(given) == {((1, 8), 64)}


def test_outliers_of_a_batch_are_ones_in_the_probe():
    for loss in (trimmed, hardest):
        with pytest.raises(InvalidParameter, match="depends on the other"):
            private(loss=loss, microbatch=16)


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
        released.append(trained_of(own)[0].detach().clone())
    assert torch.equal(*released)


class Drawing(dict):
    def __getitem__(self, name):
        return torch.where(torch.rand(40, 8) < 0.3, 0, super().__getitem__(name))


def test_examples_are_as_they_were_when_they_were_given(monkeypatch):
    """Not another time for every step, and not what something writes into them meanwhile."""
    own, seen, take = private(), [], sums.taken

    def taken(*given):
        seen.append(take(*given)["ids"])
        return {"ids": seen[-1]}

    monkeypatch.setattr(sums, "taken", taken)
    own.fit(Drawing(texts(40)))
    assert len(seen) == 3
    assert all(torch.equal(seen[0], one) for one in seen)  # all 40, in one order
    own, examples = private(), texts(40)
    with after_step(lambda: examples["ids"].zero_()), pytest.raises(StageFailed, match="wrote into the examples"):
        own.fit(examples)


class Writing(Twice):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, ids):
        if (ids == WORDS - 1).any():
            self.head.weight.data += 1.0
            raise self.error
        return super().forward(ids)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_model_that_changed_and_stopped_is_not_trained_again(error):
    model, examples = adapted(Writing(error), ["layer"]), texts(40)
    examples["ids"][5, 3] = WORDS - 1
    own = private(model, probe={"ids": texts(4)["ids"].clamp(max=WORDS - 2)})
    with pytest.raises((StageFailed, KeyboardInterrupt)):
        own.fit(examples)
    with pytest.raises(InvalidParameter, match="trained on private examples before"):
        private(own.model)


@pytest.mark.parametrize("isolation", [None, "process"])
@pytest.mark.parametrize("where", ["update_layer", "put_adapter", "arrays_of", "sum_of_steps"])
def test_an_interrupt_while_the_adapter_is_put_in_place(where, isolation, monkeypatch):
    """Behind the first layer, behind all, and before the certificate: the model is what it was, and can be trained."""
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    model, given = small("twice"), {"method": "m2", "steps": 1, "isolation": isolation, "ledger": ledger}
    own, before = private(model, **given), {name: one.clone() for name, one in model.state_dict().items()}
    owner = own._probed.layers[0].module.__class__ if where == "update_layer" else training
    run, config = getattr(owner, where), model.peft_config["default"].to_dict()

    def interrupted(*positional, **named):
        run(*positional, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            own.fit(texts(9))
    assert [entry.status for entry in ledger.entries()] == ["failed"]
    assert own.certificate_ is None
    assert model.peft_config["default"].to_dict() == config
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    assert private(model, **{**given, "ledger": None, "dataset": "others"}).fit(texts(9)).certificate_.verify()


def test_an_interrupt_behind_the_certificate(monkeypatch):
    """The whole is released: what interrupts comes out, and nothing is called a failure."""
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own, settle = private(ledger=ledger, dataset="texts", steps=1), FitCharge.settle

    def interrupted(charge, status):
        settle(charge, status)
        raise KeyboardInterrupt

    monkeypatch.setattr(FitCharge, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        own.fit(texts(40))
    assert [entry.status for entry in ledger.entries()] == ["released"]
    assert own.certificate_.verify()


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


CHANGES = {
    "an adapter that is gone": lambda model: model.delete_adapter("default"),
    "numbers that are gone": lambda model: model.to("meta"),
    "another scale": lambda model: setattr(model.peft_config["default"], "lora_alpha", 99),
    "other weights": lambda model: model.base_model.model.layer.lora_B["default"].weight.data.add_(1.0),
    "another matrix": lambda model: model.base_model.model.layer.lora_A["default"].weight.data.zero_(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_certified_is_exported_whatever_became_of_the_model(change, tmp_path):
    own = private(steps=1).fit(texts(40))
    first, again = (own.export(tmp_path / "first", conditional=True), tmp_path / "again")
    CHANGES[change](own.model)
    own.export(again, conditional=True)
    assert certified(again).verify()
    names = sorted(one.name for one in again.iterdir())
    assert all((again / name).read_bytes() == (tmp_path / first / name).read_bytes() for name in names)
