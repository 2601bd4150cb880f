"""Whatever stops a step ends the training: no further update, no certificate, and the ledger says so."""

import copy
import os
import pickle

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import Twice, adapted, next_word, small, texts  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import InvalidParameter, PpdpError, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, training  # noqa: E402

PUBLIC = {"n_rows": 60, "batch_size": 20, "steps": 6, "epsilon": 1.0, "delta": 1e-5, "learning_rate": 0.5}
SWITCH = []  # what is to be raised


def private(model=None, loss=next_word, **other):
    model = small("twice") if model is None else model
    return PrivateLoRA(model, loss, probe=texts(2, seed=9), **{**PUBLIC, **other})


def raised():
    if SWITCH:
        raise SWITCH[0]


def loss(model, batch):
    raised()
    return next_word(model, batch)


class Descent(torch.optim.SGD):
    """Raises after half of an update."""

    def step(self, closure=None):
        super().step(closure)
        raised()


class Reaching(Twice):
    """Writes into its own adapter or weights when it sees a private word."""

    def __init__(self, where):
        super().__init__()
        self.where = where

    def forward(self, ids):
        if (ids == 39).any():
            with torch.no_grad():
                weight = self.head.weight if self.where == "head" else self.layer.lora_B["default"].weight
                weight.data += 1.0
        return super().forward(ids)


WAYS = {
    "the loss": ({"loss": loss}, RuntimeError("39"), StageFailed),
    "the optimizer": ({"optimizer": lambda tensors: Descent(tensors, lr=0.1)}, ValueError("39"), StageFailed),
    "an interrupt": ({"loss": loss}, KeyboardInterrupt(), KeyboardInterrupt),
    "an interrupted update": ({"optimizer": lambda t: Descent(t, lr=0.1)}, KeyboardInterrupt(), KeyboardInterrupt),
    "an exit": ({"loss": loss}, SystemExit(3), SystemExit),
    "no memory": ({"loss": loss}, MemoryError(), StageFailed),
    "a model that writes its adapter": ({"model": "B"}, None, StageFailed),
    "a model that writes its head": ({"model": "head"}, None, StageFailed),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_error_ends_the_training_for_good(way, tmp_path):
    given, error, kind = WAYS[way]
    given = {**given, "model": adapted(Reaching(given["model"]), ["layer"])} if "model" in given else given
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    training = private(**given, ledger=ledger, dataset="texts")
    examples = texts(60)
    examples["ids"].clamp_(max=38)
    if error is None:
        examples["ids"][:, 2] = 39
    batches, weights = training.batches(examples), training._layers[0].trained
    updates = 0
    try:
        if error is not None:
            training.step(next(batches))
        SWITCH.extend([] if error is None else [error])
        batch = next(batches)
        with pytest.raises(kind):
            training.step(batch)
    finally:
        SWITCH.clear()
    seen = weights.detach().clone()
    for _ in range(20):
        for again in (
            lambda: training.step(batch),
            lambda: training.step(next(batches)),
            lambda: training.fit(examples),
        ):
            with pytest.raises((InvalidParameter, StopIteration)):
                again()
        updates += not torch.equal(weights.detach(), seen)
    assert updates == 0
    assert weights.grad is None
    for leave in (training.finish, lambda: training.export(tmp_path / "adapter", conditional=True)):
        with pytest.raises(InvalidParameter, match="ended by an error"):
            leave()
    assert training.certificate_ is None
    assert [entry.status for entry in ledger.entries()] == ["failed"]
    assert training._done <= training.plan_.question.steps


def refusing(*_, **__):
    raise RuntimeError("39")


@pytest.mark.parametrize("where", ["mark_trained", "poisson_sample", "taken", "versions", "conditions"])
def test_an_error_between_the_charge_and_the_first_update_is_on_the_account(where, monkeypatch):
    """Also one that stops a whole fit in front of a step, of which nobody holds the batch."""
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own = private(ledger=ledger, dataset="texts")
    paid, before = training.charge, own._layers[0].trained.detach().clone()

    def charged(*given, **named):
        found = paid(*given, **named)
        other = (lambda *_: ("others",)) if where == "conditions" else refusing
        monkeypatch.setattr(training, where, other)
        return found

    monkeypatch.setattr(training, "charge", charged)
    with pytest.raises(InvalidParameter if where == "conditions" else (StageFailed, RuntimeError)):
        own.fit(texts(60))
    monkeypatch.undo()
    assert [entry.status for entry in ledger.entries()] == ["failed"]
    assert torch.equal(own._layers[0].trained.detach(), before)
    with pytest.raises(InvalidParameter, match=r"begun before|ended by an error"):
        own.fit(texts(60))


def test_a_second_fit_does_not_end_a_loop_that_goes_on():
    own, examples = private(), texts(60)
    for batch in own.batches(examples):
        with pytest.raises(InvalidParameter, match="begun before"):
            own.fit(examples)
        own.step(batch)
    assert own.certificate_ is not None


def test_updates_are_as_many_as_are_certified():
    """Of a model whose state comes back after two batches; every error is caught and gone over."""
    updates, failed = 0, 0
    training = private(adapted(Reaching("head"), ["layer"]))
    weights, examples = training._layers[0].trained, texts(60)
    try:
        for batch in training.batches(examples):
            before = weights.detach().clone()
            try:
                training.step(batch)
            except StageFailed:
                failed += 1
            updates += not torch.equal(before, weights.detach())
    except PpdpError:
        pass
    assert failed == 1
    assert updates <= training._done <= 6


def test_more_examples_than_declared_end_it():
    training = private()
    with pytest.raises(PpdpError, match="more examples"):
        training.fit(texts(61))
    with pytest.raises(InvalidParameter, match=r"ended by an error|begun"):
        training.fit(texts(60))


def test_nothing_is_trained_after_the_certificate():
    training = private()
    batches = training.batches(texts(60))
    training.step(next(batches))
    batch = next(batches)
    certificate, before = training.finish(), training._layers[0].trained.detach().clone()
    with pytest.raises(InvalidParameter, match="with a certificate"):
        training.step(batch)
    assert next(batches, None) is None
    assert torch.equal(before, training._layers[0].trained)
    assert training.finish() is certificate


def test_a_training_is_not_copied():
    training = private()
    next(training.batches(texts(60)))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="neither copied nor pickled"):
            copied(training)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_training_goes_on_in_its_own_process(monkeypatch):
    training = private()
    batch = next(training.batches(texts(60)))
    monkeypatch.setattr("ppdp.mechanisms.lora.training.os.getpid", lambda: -1)
    with pytest.raises(InvalidParameter, match="another process"):
        training.step(batch)
