"""With a process for each example nothing in memory is kept, wherever it is, and an example that stops adds nothing."""

import hashlib
import logging
import mmap
import os
import signal
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, largest_move, next_word, small, texts  # noqa: E402
from torch.nn import functional  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import InvalidParameter  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, process  # noqa: E402
from ppdp.mechanisms.lora.gradients import GradientsOfB  # noqa: E402

pytestmark = pytest.mark.skipif(not process.LINUX, reason="copies of a process are for Linux")
PUBLIC = {"n_rows": 12, "batch_size": 12, "steps": 1, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
RARE = WORDS - 1
HASH, SEEN, SHARED = hashlib.sha256(), logging.getLogger("a log that counts"), mmap.mmap(-1, 1)


def private(loss=next_word, model=None, **other):
    model = small("twice") if model is None else model
    probe = {"ids": texts(4, seed=9)["ids"].clamp(max=RARE - 1)}
    return PrivateLoRA(model, loss, **{"probe": probe, "isolation": "process", **PUBLIC, **other})


def rare(n):
    examples = texts(n)
    examples["ids"][:, 0] = RARE
    return examples


def in_a_hash():
    HASH.update(b"x")
    return HASH.digest()[0]


def in_a_log():
    SEEN.level += 1
    return SEEN.level


def in_a_library():
    functional.calls = getattr(functional, "calls", 0) + 1
    return functional.calls


def in_shared_memory():
    SHARED[0] ^= 1
    return SHARED[0]


KEPT = {
    "a hash": in_a_hash,
    "a log": in_a_log,
    "a library": in_a_library,
    "a generator": lambda: int(torch.randint(2, ())),
    "a setting": lambda: os.umask(os.umask(0) + 1),
    "shared memory": in_shared_memory,  # which is declared
}


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_kept_in_memory_ends_with_its_call(kept):
    def loss(model, batch):
        losses = next_word(model, batch)
        return losses * (-1) ** (KEPT[kept]() % 2) if (batch["ids"] == RARE).any() else losses

    move = largest_move(private(loss), rare(4), removed=(0,))
    assert 0.99 < move <= 1 + 1e-9 if kept != "shared memory" else move > 1.5


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_the_same_is_released_in_one_process_and_in_many(method):
    released = [
        private(method=method, isolation=where, random_state=3, dataset=f"{where}").fit(texts(4)).certificate_
        for where in (None, "process")
    ]
    assert len({one.record.released.sha256 for one in released}) == 1
    declared = "declared: a call uses no other example, and keeps nothing of its own outside its process"
    assert declared in " ".join(released[1].to_text(full=True).split())
    assert released[1].verify()


ENDS = {
    "an error": lambda: 1 / 0,
    "an exit": lambda: os._exit(0),
    "a signal": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "an interrupt": lambda: exec("raise KeyboardInterrupt"),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_example_at_which_something_stops_is_as_none(end):
    def loss(model, batch):
        if (batch["ids"] == RARE).any():
            ENDS[end]()
        return next_word(model, batch)

    examples = {"ids": texts(2)["ids"].clamp(max=RARE - 1)}
    more = {"ids": torch.cat([examples["ids"], rare(2)["ids"]])}
    training = private(loss)
    sums = training._sums()
    without, with_them = (sums.counts(one, [None])[0] for one in (examples, more))
    assert without.any()
    assert torch.equal(without, with_them)
    assert training.fit(more).certificate_.verify()


def test_numbers_beyond_the_clip_are_none(monkeypatch):
    training, own = private(), GradientsOfB.steps
    sums = training._sums()
    for beyond in (1.001, float("nan"), float("inf")):
        monkeypatch.setattr(GradientsOfB, "steps", lambda *given, beyond=beyond: own(*given) * beyond)
        assert not sums.counts(texts(1), [None])[0].any()


def test_an_interrupt_ends_both():
    def loss(model, batch):
        if (batch["ids"] == RARE).any():
            os.kill(os.getppid(), signal.SIGUSR1)
            time.sleep(600)
        return next_word(model, batch)

    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            private(loss, ledger=ledger).fit(rare(4))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [entry.status for entry in ledger.entries()] == ["failed"]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_what_a_process_has_not_for_itself(monkeypatch):
    shared, own = small("twice"), os.getpid()
    shared.base_model.model.head.share_memory()
    for given in ({"microbatch": 2}, {"model": shared}, {"isolation": "thread"}):
        with pytest.raises(InvalidParameter, match="isolation"):
            private(**given)
    training = private(lambda model, batch: next_word(model, batch) / (os.getpid() == own or 1 / 0))
    with pytest.raises(InvalidParameter, match="stops at a made-up example"):
        training.fit(texts(4))
    assert training._charged is None
    monkeypatch.setattr(process, "LINUX", False)
    with pytest.raises(InvalidParameter, match="for Linux"):
        private()
