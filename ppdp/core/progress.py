"""A progress bar for whatever takes longer than two seconds, on terminals and in notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from io import StringIO
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE, PAUSE = 2.0, 0.2  # seconds before there is a bar, and between two pictures of it in a notebook

_UNSEEN: ContextVar[bool] = ContextVar("unseen", default=False)
_STEP: ContextVar[str] = ContextVar("step", default="")
_shown: list[Any] = []  # what stands on the terminal: one display, with a line for each loop


def progress(items: Sequence[T], description: str) -> Iterator[T]:
    """Iterate; after two seconds show a bar with public words, on a terminal's standard error or in a notebook."""
    return _watched(items, description, len(items), 1)


@contextmanager
def holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """In this context a variable has this value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def unseen(yes: bool) -> AbstractContextManager[None]:
    """In this context no bar is shown, if so: it would tell a private number."""
    return holding(_UNSEEN, _UNSEEN.get() or yes)


def named(step: str) -> AbstractContextManager[None]:
    """In this context bars begin with the name of a step, which is public."""
    return holding(_STEP, step)


def paced(blocks: Iterable[T], rows: int, size: int) -> Iterator[T]:
    """Iterate over what blocks of so many rows gave, with a bar of rows and how many a second."""
    return _watched(blocks, "rows", rows, size)


def _watched(items: Iterable[T], description: str, total: int, step: int) -> Iterator[T]:
    description = f"{_STEP.get()}: {description}" if _STEP.get() else description
    started, seen = time.monotonic(), (sys.stderr.isatty() or _in_notebook()) and not _UNSEEN.get()
    own: Any = None
    bar: Any = None
    task: Any = None
    try:
        for done, item in enumerate(items):
            spent = time.monotonic() - started
            if seen and spent > PATIENCE:
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


def _in_notebook() -> bool:
    """Whether the kernel of a notebook runs this process."""
    interactive = sys.modules.get("IPython")
    return interactive is not None and hasattr(interactive.get_ipython(), "kernel")


def _display() -> Any:
    from rich.console import Console
    from rich.progress import Progress

    if _in_notebook():
        return _Page()
    bar = Progress(console=Console(stderr=True), transient=True)
    bar.start()
    return bar


class _Page:
    """The same bars in the output of a cell, which rich alone would show by widgets that have to be installed."""

    def __init__(self) -> None:
        from IPython.display import HTML, display
        from rich.console import Console
        from rich.progress import Progress

        self._html = HTML
        self._console = Console(file=StringIO(), record=True, width=100, color_system="truecolor", force_jupyter=False)
        self._bars = Progress(console=self._console, auto_refresh=False)
        self._handle = display(HTML(""), display_id=True)
        self._drawn = 0.0

    def add_task(self, description: str, total: int) -> Any:
        """One more bar."""
        return self._bars.add_task(description, total=total)

    def update(self, task: Any, **changes: Any) -> None:
        """Draw all bars again, unless they were drawn right now."""
        self._bars.update(task, **changes)
        if (now := time.monotonic()) - self._drawn > PAUSE:
            self._drawn = now
            self._console.print(self._bars.get_renderable())
            self._handle.update(
                self._html(self._console.export_html(inline_styles=True, code_format="<pre>{code}</pre>"))
            )

    def remove_task(self, task: Any) -> None:
        """One bar less."""
        self._bars.remove_task(task)

    def stop(self) -> None:
        """Leave nothing."""
        self._handle.update(self._html(""))
