"""A progress bar for whatever takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 2.0

_UNSEEN: ContextVar[bool] = ContextVar("unseen", default=False)
_shown: list[Any] = []  # what stands on the terminal: one display, with a line for each loop


def progress(items: Sequence[T], description: str) -> Iterator[T]:
    """Iterate; after two seconds show a bar with public words on a terminal's standard error."""
    return _watched(items, description, len(items), 1)


@contextmanager
def unseen(yes: bool) -> Iterator[None]:
    """In this context no bar is shown, if so: it would tell a private number."""
    token = _UNSEEN.set(_UNSEEN.get() or yes)
    try:
        yield
    finally:
        _UNSEEN.reset(token)


def paced(blocks: Iterable[T], rows: int, size: int) -> Iterator[T]:
    """Iterate over what blocks of so many rows gave, with a bar of rows and how many a second."""
    return _watched(blocks, "rows", rows, size)


def _watched(items: Iterable[T], description: str, total: int, step: int) -> Iterator[T]:
    started, terminal = time.monotonic(), sys.stderr.isatty() and not _UNSEEN.get()
    own: Any = None
    bar: Any = None
    task: Any = None
    try:
        for done, item in enumerate(items):
            spent = time.monotonic() - started
            if terminal and spent > PATIENCE:
                if not _shown:
                    own = _display()
                    _shown.append(own)
                if bar is not _shown[0]:
                    bar, task = _shown[0], _shown[0].add_task(description, total=total)
                pace = f"{description}, {done * step / spent / 1e6:.2f} million a second" if step > 1 else description
                bar.update(task, completed=min(done * step, total), description=pace)
            yield item
    finally:
        if own is not None:
            _shown.remove(own)
            own.stop()
        elif bar in _shown:
            bar.remove_task(task)


def _display() -> Any:
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.start()
    return bar
