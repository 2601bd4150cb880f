"""A call in a process of its own: whatever it keeps in memory ends with it."""

from __future__ import annotations

import mmap
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

import torch

from ppdp.mechanisms.lora.layers import Tensor, all_tensors, refuse

LINUX = sys.platform == "linux"  # elsewhere libraries of the system stop in a copy


def refuse_shared(model: Any, public: Mapping[str, Tensor], microbatch: int) -> None:
    """Refuse where a process has not all of a call for itself."""
    if not LINUX or microbatch > 1:
        refuse("isolation='process' is for Linux, and for one example in a call.", "microbatch=1, or isolation=None.")
    if any(one.is_shared() for _, one in [*all_tensors(model), *public.items()]):
        refuse("isolation='process' takes no tensors on a GPU or in shared memory.", "model.cpu(), or isolation=None.")


def in_a_process(work: Callable[[], Tensor], size: int) -> Tensor | None:
    """What a function gives in a copy of this process, ``size`` float64 numbers; None where it gives none, or stops.

    The copy begins in memory as it is here, and nothing but these numbers comes back.
    """
    answer, child = torch.frombuffer(mmap.mmap(-1, 8 * size), dtype=torch.float64), 0  # shared with the copy, and zero
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # by none does a copy go on as we do
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of other threads, which a copy has not
            child = os.fork()
        if child == 0:
            _end(lambda: answer.copy_(work()))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        ended = os.waitpid(child, 0)[1]
    except BaseException:  # an interrupt
        if child:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return answer.clone() if ended == 0 else None


def _end(work: Callable[[], object]) -> NoReturn:
    """Do the work, and end this process, whatever comes of it: without a word, as it is of a row."""
    try:
        torch.set_num_threads(1)  # the others stayed behind
        work()
        os._exit(0)
    finally:
        os._exit(1)
