"""Calls in processes of their own, copies of one that holds no batch: what a call keeps in memory ends with it."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import torch

from ppdp.exceptions import StageFailed
from ppdp.mechanisms.lora.layers import STAGE, Tensor, all_tensors, refuse

LINUX = sys.platform == "linux"  # elsewhere libraries of the system stop in a copy
_LOAD, _CALL, _DONE, _STOPPED = b"l", b"c", b"d", b"s"
_FIX = "isolation=None, by which you declare that model and loss keep and use nothing of other examples"


def refuse_shared(model: Any, public: Mapping[str, Tensor], microbatch: int) -> None:
    """Refuse where a process has not all of a call for itself."""
    if not LINUX:
        refuse("a process for each example, the default, is for Linux.", f"{_FIX}.")
    if microbatch > 1:
        refuse("a process for each example, the default, has no microbatch > 1.", f"microbatch=1, or {_FIX}.")
    if any(one.is_shared() or one.device.type != "cpu" for _, one in [*all_tensors(model), *public.items()]):
        refuse("isolation='process' takes no tensors on a GPU or in shared memory.", f"model.cpu(), or {_FIX}.")


class Copies:
    """A process that waits as this one is now, to be copied for each call.

    ``work`` of an example in the form of ``public`` gives ``size`` float64 numbers, and nothing but these comes back.
    Into the ``loaded`` tensors the waiting process takes what is the same for all calls of a step. It never holds an
    example: that stands in a page which copies read, and which is overwritten before each call. The files that this
    process has open are closed in it, and nothing that it runs can write into one.
    """

    def __init__(
        self,
        loaded: Sequence[Tensor],
        public: Mapping[str, Tensor],
        size: int,
        work: Callable[[Mapping[str, Tensor]], Tensor],
    ) -> None:
        self._loaded = [_shared(one) for one in loaded]
        self._example = {name: _shared(one) for name, one in public.items()}
        self._answer = _shared(torch.empty(size, dtype=torch.float64))
        pages, example, answer = self._loaded, self._example, self._answer
        (asked, self._ask), (self._told, tell) = os.pipe(), os.pipe()
        with _undisturbed():  # a copy goes on by no signal as we do, and an interrupt waits until it can be ended
            if (child := os.fork()) == 0:
                for one in (self._ask, self._told):
                    os.close(one)
                _only(lambda: _serve(asked, tell, lambda: _copy(loaded, pages), lambda: answer.copy_(work(example))))
            self.close = weakref.finalize(self, _end, child, os.getpid(), self._ask, self._told)
            for one in (asked, tell):
                os.close(one)

    def load(self, values: Sequence[Tensor]) -> None:
        """From now on calls begin with these."""
        _copy(self._loaded, values)
        self._done(_LOAD)

    def call(self, example: Mapping[str, Tensor]) -> Tensor | None:
        """What a copy makes of an example; None where it gives nothing, or stops."""
        _copy(list(self._example.values()), [example[name] for name in self._example])
        self._answer.zero_()
        return self._answer.clone() if self._done(_CALL) else None

    def _done(self, task: bytes) -> bool:
        said = b""
        try:
            with suppress(OSError):  # of one that has ended
                if self.close.alive:
                    os.write(self._ask, task)
                    said = os.read(self._told, 1)
        finally:
            if not said:  # or behind an interrupt
                self.close()
        if not said:
            what = "the process whose copies run model and loss has ended."
            raise StageFailed(what, stage=STAGE, fix="more memory, or isolation=None.")
        return said == _DONE


def _copy(places: Sequence[Tensor], values: Sequence[Tensor]) -> bool:
    with torch.no_grad():
        for place, value in zip(places, values):
            place.copy_(value)
    return True


def _shared(like: Tensor) -> Tensor:
    """A tensor of this shape and type, in pages of its own that processes share."""
    raw = torch.frombuffer(mmap.mmap(-1, max(like.nbytes, 1)), dtype=torch.uint8)
    return raw[: like.nbytes].view(like.dtype).view(like.shape)


@contextmanager
def _undisturbed() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of other threads, which a copy has not
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(asked: int, tell: int, load: Callable[[], bool], work: Callable[[], object]) -> NoReturn:
    """Do what is asked for, calls in copies of this process, until nobody asks any more."""
    import resource  # which Windows has not

    os.setpgid(0, 0)  # to be ended with the copy that is at work
    _close_files({asked, tell})
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    torch.set_num_threads(1)  # the others stayed behind
    fork = ctypes.PyDLL(None).fork  # the system's: at Python's own, libraries count and keep what they registered
    _in_a_copy(fork, lambda: None)  # for what Python keeps at the first time
    while task := os.read(asked, 1):
        done = load() if task == _LOAD else _in_a_copy(fork, work, asked, tell)
        os.write(tell, _DONE if done else _STOPPED)
    os._exit(0)


def _in_a_copy(fork: Callable[[], int], act: Callable[[], object], *pipes: int) -> bool:
    """Whether a copy of this process acts without an error; this one is as it was before."""
    if child := fork():
        return os.waitpid(child, 0)[1] == 0
    for one in pipes:
        os.close(one)
    _only(act)


def _close_files(kept: set[int]) -> None:
    """Close what is open but these; each number stays taken, by what can be neither read nor written."""
    null, none = os.open(os.devnull, os.O_RDWR), os.open("/", os.O_PATH)
    for one in sorted({0, 1, 2, *map(int, os.listdir("/proc/self/fd"))} - {*kept, null, none}):
        os.dup2(null if one <= 2 else none, one)


def _only(act: Callable[[], object]) -> NoReturn:
    """Act, and end this process, whatever comes of it: without a word, as it is of a row."""
    try:
        act()
        os._exit(0)
    finally:
        os._exit(1)


def _end(child: int, owner: int, *pipes: int) -> None:
    for one in pipes:
        os.close(one)
    if os.getpid() == owner:
        for end in (lambda: os.killpg(child, signal.SIGKILL), lambda: os.waitpid(child, 0)):
            with suppress(OSError):  # it ends by itself, now that nobody asks
                end()
