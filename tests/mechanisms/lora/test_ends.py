"""Whatever stops a step ends the training: no further update, no certificate, and the ledger says so."""

import copy
import functools
import os
import pickle

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import (  # noqa: E402
    WORDS,
    Twice,
    adapted,
    after_step,
    largest_move,
    next_word,
    small,
    texts,
    trained_of,
)

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import InvalidParameter, LedgerError, PpdpError, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, process, sums, training  # noqa: E402
from ppdp.mechanisms.lora.weights import Weights  # noqa: E402

PUBLIC = {"n_rows": 60, "batch_size": 20, "steps": 6, "epsilon": 1.0, "delta": 1e-5, "learning_rate": 0.5}
PUBLIC |= {"isolation": None}


def private(model=None, loss=next_word, **other):
    model = small("twice") if model is None else model
    return PrivateLoRA(model, loss, **{"probe": without(texts(2, seed=9)), **PUBLIC, **other})


RARE = WORDS - 1


def without(examples):
    """Texts without the word at which something stops."""
    return {"ids": examples["ids"].clamp(max=RARE - 1)}


def stopping(error):
    def loss(model, batch):
        if (batch["ids"] == RARE).any():
            raise error
        return next_word(model, batch)

    return loss


class Reaching(Twice):
    """Writes into its own adapter or weights when it sees a private word."""

    def __init__(self, where):
        super().__init__()
        self.where = where

    def forward(self, ids):
        if (ids == RARE).any():
            with torch.no_grad():
                weight = self.head.weight if self.where == "head" else self.layer.lora_B["default"].weight
                weight.data += 1.0
        return super().forward(ids)


WAYS = {
    "the loss": (RuntimeError("39"), StageFailed),
    "an interrupt": (KeyboardInterrupt(), KeyboardInterrupt),
    "an exit": (SystemExit(3), SystemExit),
    "no memory": (MemoryError(), StageFailed),
    "the optimizer": (ValueError("39"), StageFailed),
    "an interrupted update": (KeyboardInterrupt(), KeyboardInterrupt),
    "behind a step": (RuntimeError("39"), StageFailed),
    "an interrupt behind a step": (KeyboardInterrupt(), KeyboardInterrupt),
    "a model that writes its adapter": ("B", StageFailed),
    "a model that writes its head": ("head", StageFailed),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_error_ends_the_training_for_good(way, tmp_path, monkeypatch):
    error, kind = WAYS[way]
    ledger, examples = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi"), without(texts(60))
    given, behind, updates = {}, lambda: None, []
    if isinstance(error, str):
        given["model"] = adapted(Reaching(error), ["layer"])
        examples["ids"][:, 2] = RARE
    elif "behind" in way:
        behind = functools.partial(throw, error)
    elif "update" in way or "optimizer" in way:
        half = torch.optim.SGD.step
        own = lambda optimizer: (half(optimizer), throw(error) if updates else None)  # noqa: E731
        behind = lambda: monkeypatch.setattr(torch.optim.SGD, "step", own)  # noqa: E731
    else:
        given["loss"], examples["ids"][:3, 2] = stopping(error), RARE
    training = private(**given, ledger=ledger, dataset="texts")
    update = Weights.update
    monkeypatch.setattr(Weights, "update", lambda *one: (update(*one), updates.append(1)))
    weights = trained_of(training)[0]
    before = weights.detach().clone()
    with after_step(behind), pytest.raises(kind):
        training.fit(examples)
    done = len(updates)
    assert done <= training.plan_.question.steps
    for leave in (lambda: training.fit(without(texts(60))), lambda: training.export(tmp_path / "a", conditional=True)):
        with pytest.raises(InvalidParameter, match="ended by an error"):
            leave()
    assert len(updates) == done
    assert torch.equal(before, weights)
    assert weights.grad is None
    assert training.certificate_ is None
    assert [entry.status for entry in ledger.entries()] == ["failed"]


def test_a_ledger_that_is_lost_leaves_no_weights(monkeypatch, tmp_path):
    account = tmp_path / "ledger.json"
    own = private(ledger=Ledger(account, epsilon=3.0, delta=1e-4, accounting="renyi"))
    before = trained_of(own)[0].detach().clone()
    with after_step(lambda: account.write_text("lost"), number=2), pytest.raises(LedgerError, match="cannot be used"):
        own.fit(without(texts(60)))
    assert torch.equal(before, trained_of(own)[0])
    assert own.certificate_ is None


def test_one_more_interrupt_while_the_model_is_put_back(monkeypatch):
    own, looks = private(ledger=Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")), sums.Sums.are_pure
    before = trained_of(own)[0].detach().clone()
    monkeypatch.setattr(sums.Sums, "are_pure", lambda one: (looks(one), throw(KeyboardInterrupt())))
    with after_step(lambda: throw(KeyboardInterrupt()), number=2), pytest.raises(KeyboardInterrupt):
        own.fit(without(texts(60)))
    assert torch.equal(before, trained_of(own)[0])
    assert [entry.status for entry in own.ledger.entries()] == ["failed"]
    with pytest.raises(InvalidParameter, match="trained on private examples before"):
        private(own.model)


def throw(error):
    raise error


def refusing(*_, **__):
    raise RuntimeError("39")


PLACES = {
    "poisson_sample": sums,
    "taken": sums,
    "versions": training,
    "files_of": training,
    "arrays_of": training,
}


@pytest.mark.parametrize("where", PLACES)
def test_an_error_behind_the_charge_is_on_the_account(where, monkeypatch):
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    own = private(ledger=ledger, dataset="texts")
    paid, before = training.charge, trained_of(own)[0].detach().clone()

    def charged(*given, **named):
        found = paid(*given, **named)
        monkeypatch.setattr(PLACES[where], where, refusing)
        return found

    monkeypatch.setattr(training, "charge", charged)
    with pytest.raises((StageFailed, RuntimeError)):
        own.fit(texts(60))
    monkeypatch.undo()
    assert [entry.status for entry in ledger.entries()] == ["failed"]
    assert torch.equal(trained_of(own)[0].detach(), before)
    with pytest.raises(InvalidParameter, match=r"ended by an error"):
        own.fit(texts(60))


def test_of_two_trainings_of_one_model_one_is_refused_and_costs_nothing(monkeypatch):
    """Wherever the other one is; more examples than declared end that, and do not count as a fit."""
    first, said = private(dataset="of two"), training.issuer_words
    second = private(first.model, dataset="of two")

    def meanwhile(own):
        monkeypatch.undo()
        with pytest.raises(InvalidParameter, match="another training has this adapter"):
            second.fit(texts(60))
        return said(own)

    monkeypatch.setattr(training, "issuer_words", meanwhile)
    with pytest.raises(PpdpError, match="more examples"):
        first.fit(texts(61))
    with pytest.raises(InvalidParameter, match=r"ended by an error|begun"):
        first.fit(texts(60))
    assert second.fit(texts(60)).certificate_.record.issued.fit == 1
    with pytest.raises(InvalidParameter, match="another training has this adapter"):
        private(first.model)


def test_nothing_is_trained_after_the_certificate():
    training = private().fit(texts(60))
    certificate, before = training.certificate_, trained_of(training)[0].detach().clone()
    with pytest.raises(InvalidParameter, match="with a certificate"):
        training.fit(texts(60))
    assert torch.equal(before, trained_of(training)[0])
    assert training.certificate_ is certificate


def test_a_training_is_not_copied():
    training = private()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="neither copied nor pickled"):
            copied(training)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_training_goes_on_in_its_own_process(monkeypatch):
    """What a step forked ends, and says nothing to the ledger, which is the other's."""
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    training, own = private(ledger=ledger), os.getpid()
    forked = lambda: monkeypatch.setattr(os, "getpid", lambda: own + 1)  # noqa: E731
    with after_step(forked), pytest.raises(InvalidParameter, match="another process"):
        training.fit(texts(60))
    monkeypatch.undo()
    assert [entry.status for entry in ledger.entries()] == ["reserved"]


@pytest.mark.skipif(not process.LINUX, reason="copies of a process are for Linux")
@pytest.mark.parametrize("method", ["fa", "m2"])
def test_a_copy_of_a_training_has_no_example_computed(method):
    """As a filter of logs may fork one: both would write into the page that calls read."""
    training, examples = private(n_rows=3, batch_size=3, method=method, isolation="process"), without(texts(4))
    apart, batch = training._sums(), {"ids": examples["ids"][:3]}
    if (child := os.fork()) == 0:
        try:
            apart.counts({"ids": examples["ids"][3:]}, apart.projections())
        except InvalidParameter as error:
            os._exit(3 if "another process" in str(error) else 1)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert largest_move(training, batch, removed=(0,), sums=apart) <= 1 + 1e-9
