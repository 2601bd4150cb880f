"""A progress bar for whatever takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 2.0


def progress(items: Sequence[T], description: str) -> Iterator[T]:
    """Iterate; after two seconds show a bar with public words on a terminal's standard error."""
    started, bar, task = time.monotonic(), None, None
    terminal = sys.stderr.isatty()
    try:
        for done, item in enumerate(items):
            if bar is None and terminal and time.monotonic() - started > PATIENCE:
                from rich.console import Console
                from rich.progress import Progress

                bar = Progress(console=Console(stderr=True), transient=True)
                bar.start()
                task = bar.add_task(description, total=len(items))
            if bar is not None and task is not None:
                bar.update(task, completed=done)
            yield item
    finally:
        if bar is not None:
            bar.stop()
