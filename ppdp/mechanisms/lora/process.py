"""Calls in processes of their own, copies of one that holds no batch: what a call keeps in memory ends with it."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import sys
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import repeat
from os import _exit, getpid, kill  # as they are now, whatever a call puts into their places
from typing import Any, NoReturn

import torch

from ppdp.exceptions import StageFailed
from ppdp.mechanisms.lora.layers import STAGE, Tensor, all_tensors, place_of, refuse

LINUX = sys.platform == "linux"  # elsewhere libraries of the system stop in a copy
SYSTEM: Any = ctypes.PyDLL(None) if LINUX else None  # at Python's own fork libraries count, and keep what they did
FORK: Any = getattr(SYSTEM, "_Fork", None) or getattr(SYSTEM, "fork", None)  # so do those in C, but at the first one
LONGEST = 600.0  # seconds that a made-up example, or the begin of a step, may take in a process of its own
_LOAD, _CALL, _DONE = b"l", b"c", b"d"
_FIX = "isolation=None, by which you declare that model and loss keep and use nothing of other examples"


def refuse_shared(model: Any, public: Mapping[str, Tensor], microbatch: int) -> None:
    """Refuse where a process has not all of a call for itself."""
    if not LINUX:
        refuse("a process for each example, the default, is for Linux.", f"{_FIX}.")
    if microbatch > 1:
        refuse("a process for each example, the default, has no microbatch > 1.", f"microbatch=1, or {_FIX}.")
    tensors = [one for _, one in [*all_tensors(model), *public.items()]]
    maps = _shared_maps()
    if any(one.is_shared() or one.device.type != "cpu" for one in tensors) or any(
        first < end and start < behind for first, behind in map(place_of, tensors) for start, end in maps
    ):
        refuse("isolation='process' takes no tensors on a GPU or in shared memory.", f"model.cpu(), or {_FIX}.")


def _shared_maps() -> list[tuple[int, int]]:
    """Where memory of this process begins and ends that a copy of it shares."""
    with open("/proc/self/maps") as file:
        lines = [line.split()[:2] for line in file]
    places = [place.split("-") for place, rights in lines if rights.endswith("s")]
    return [(int(start, 16), int(end, 16)) for start, end in places]


class Copies:
    """A process that waits as this one is now, to be copied for each call.

    ``work`` of an example in the form of ``public`` gives flat tensors of the types of ``answers`` and no longer, of
    which nothing else comes back. Into the ``loaded`` tensors the waiting process takes what is the same for
    all calls of a step. It never holds an example: that stands in a page which copies read, and which is overwritten
    before each call. The files that this process has open are closed in it, nothing that it runs can make a file
    longer, and it ends with this one.
    """

    def __init__(
        self,
        loaded: Sequence[Tensor],
        public: Mapping[str, Tensor],
        answers: Sequence[Tensor],
        work: Callable[[Mapping[str, Tensor]], Sequence[Tensor]],
    ) -> None:
        self._loaded = [_shared(one) for one in loaded]
        self._example = {name: _shared(one) for name, one in public.items()}
        self._answers, self._done = [_shared(one) for one in answers], _shared(torch.empty(1))
        self._owner = owner = os.getpid()
        pages, example, own_answers, done = self._loaded, self._example, self._answers, self._done

        def call() -> None:  # of which the mark that it is done comes last
            own = getpid()
            if not done:
                made = work(example)
                if getpid() == own:  # and not in a process that the call has started
                    _copy([page[: len(one)] for page, one in zip(own_answers, made)], made)
                    done.fill_(1)

        with _undisturbed():  # a copy goes on by no signal as we do, and an interrupt waits until it can be ended
            (asked, self._ask), (self._told, tell) = os.pipe(), os.pipe()
            try:
                if (child := os.fork()) == 0:
                    for one in (self._ask, self._told):
                        os.close(one)
                    _only(owner, lambda: _serve(asked, tell, lambda: _copy(loaded, pages), call))
            finally:
                if getpid() != owner:  # a tracer may raise in it as well: the user's program does not go on twice
                    kill(getpid(), signal.SIGKILL)
            self.close = weakref.finalize(self, _end, child, owner, self._ask, self._told)
            for one in (asked, tell):
                os.close(one)

    def load(self, values: Sequence[Tensor]) -> None:
        """From now on calls begin with these."""
        self._refuse_elsewhere()
        _copy(self._loaded, values)
        self._done.fill_(1)
        self._ask_for(_LOAD + _CALL, LONGEST)  # of nothing: for what Python keeps at the first time

    def call(self, example: Mapping[str, Tensor], *, longest: float | None = None) -> list[Tensor] | None:
        """What a copy makes of an example; None where it stops before it has all of it, or behind so many seconds."""
        self._refuse_elsewhere()
        _copy(list(self._example.values()), [example[name] for name in self._example])
        for page in (*self._answers, self._done):
            page.zero_()
        self._ask_for(_CALL, longest)
        return [page.clone() for page in self._answers] if self._done else None

    def _refuse_elsewhere(self) -> None:
        """Refuse in a copy of the process that made this one: both would write into the pages that calls read."""
        if getpid() != self._owner:
            refuse("this training was begun in another process.", "train it there.")

    def _ask_for(self, tasks: bytes, longest: float | None) -> None:
        said = b""
        try:
            with suppress(OSError):  # of one that has ended
                if self.close.alive:
                    os.write(self._ask, tasks)
                    if select.select([self._told], [], [], longest)[0]:
                        said = os.read(self._told, 1)
        finally:
            if not said:  # or behind an interrupt
                self.close()
        if not said:
            what = "the process whose copies run model and loss has ended, or never answers."
            raise StageFailed(what, stage=STAGE, fix="more memory, no threads or tracers, or isolation=None.")


def _copy(places: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for place, value in zip(places, values):
            place.copy_(value)


def _shared(like: Tensor) -> Tensor:
    """A tensor of this shape and type, in pages of its own that processes share."""
    raw = torch.frombuffer(mmap.mmap(-1, max(like.nbytes, 1)), dtype=torch.uint8)
    return raw[: like.nbytes].view(like.dtype).view(like.shape)


@contextmanager
def _undisturbed() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of other threads, which a copy has not
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(asked: int, tell: int, load: Callable[[], object], work: Callable[[], object]) -> None:
    """Take in what a step begins with, and have a copy answer all calls of the step, until nobody asks any more."""
    import resource  # which Windows has not

    os.setpgid(0, 0)  # to be ended with the copy that is at work
    _close_files({asked, tell})
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # to wait for copies
    torch.set_num_threads(1)  # the others stayed behind
    own, going = os.getpid(), os.read(asked, 1) == _LOAD
    while going:
        load()
        if (child := SYSTEM.fork()) == 0:
            _only(own, lambda: _step(asked, tell, work))
        going = os.waitpid(child, 0)[1] == 0


def _step(asked: int, tell: int, work: Callable[[], object]) -> None:
    """Answer calls, each in a copy of this process, until a step begins.

    This process runs no bytecode meanwhile, which would count how often it ran, keeps no object of a call, and is not
    told how a copy ended: before each call it is as it was before all.
    """
    own, waits = os.getpid(), map(iter, repeat(partial(SYSTEM.waitpid, -1, None, 0)), repeat(-1))
    each = (
        map(ord, iter(partial(os.read, asked, 1), _LOAD)),  # an error where nobody asks any more
        map(bool, iter(FORK, 0)),  # the copy goes on behind all this
        map(deque, waits, repeat(0)),  # until no copy is left, nor what it put beside itself; one that stops is left
        map(bool, iter(partial(os.write, tell, _DONE), None)),
    )
    deque(zip(*each), 0)
    if os.getpid() != own:
        _only(own, lambda: _apart(work, asked, tell))


def _apart(work: Callable[[], object], *pipes: int) -> None:
    """Work, in no group and with no open file of another process, as the first to end where memory is short."""
    os.setpgid(0, 0)
    for one in pipes:
        os.close(one)
    null = os.open(os.devnull, os.O_RDWR)
    for one in range(3):
        os.dup2(null, one)
    os.close(null)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    work()


def _close_files(kept: set[int]) -> None:
    """Close what is open but these; each number stays taken, by what has neither contents, flags nor locks."""
    none = os.open("/", os.O_PATH)
    for one in sorted({0, 1, 2, *map(int, os.listdir("/proc/self/fd"))} - {*kept, none}):
        os.dup2(none, one)


def _only(parent: int, act: Callable[[], object]) -> NoReturn:
    """Act, and end this process, whatever comes of it and with its parent: without a word, as it is of a row."""
    try:
        SYSTEM.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() == parent:
            act()
            _exit(0)
    finally:
        try:
            _exit(1)
        finally:
            kill(getpid(), signal.SIGKILL)


def _end(child: int, owner: int, *pipes: int) -> None:
    with _undisturbed():
        for one in pipes:
            os.close(one)
        if os.getpid() == owner:
            for end in (os.killpg, kill):  # a group it has only once it waits
                with suppress(OSError):  # it ends by itself, now that nobody asks
                    end(child, signal.SIGKILL)
            with suppress(OSError):
                os.waitpid(child, 0)
