"""What an exception carries out of a fit: its own words, and nothing of the rows.

A traceback holds every frame that it came through, a frame all its variables, and reporters of errors send them away;
an exception also holds the ones that were handled when it was raised, even ``from None``. So there is one place through
which everything leaves.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError

from ppdp.core.private_files import is_of_a_full_disk, no_room
from ppdp.core.progress import named
from ppdp.exceptions import CompositionWarning, DiagnosticWarning, HeaderWarning, NoiseWarning, PpdpError, StageFailed

F = TypeVar("F", bound=Callable[..., Any])


def discreet(method: F) -> F:
    """A method that is given private rows: what it raises keeps its lines, and no variables.

    Errors of ppdp's keep their type and their words. Those of anything else (a user's table, a library that reads it)
    may quote a cell: :class:`StageFailed` takes their place. Floating point is silent inside: a warning, or an error
    state that raises, would be an answer about the rows.
    """

    @wraps(method)
    def guarded(*given: Any, **named: Any) -> Any:
        handled = sys.exception()
        try:
            with np.errstate(all="ignore"):
                return method(*given, **named)
        except BaseException as error:  # interrupts as well
            told = isinstance(error, (PpdpError, *WARNINGS, NotFittedError)) or hasattr(error, _BEFORE_ROWS)
            raised = interrupt_of(error) or (error if told else _untold(error))
        try:
            del given, named
            raise _bare(raised, handled)
        finally:
            del raised, handled

    return guarded  # type: ignore[return-value]


_BEFORE_ROWS = "raised_before_rows"
WARNINGS = CompositionWarning, DiagnosticWarning, HeaderWarning, NoiseWarning


@contextmanager
def before_rows() -> Iterator[None]:
    """In this context no row is looked at, so that the words of all errors are public."""
    try:
        yield
    except Exception as error:
        with suppress(AttributeError):  # of a class without room for it
            setattr(error, _BEFORE_ROWS, True)
        raise


@contextmanager
def suppressed() -> Iterator[None]:
    """In this context the own code of cells may raise anything: of it nothing comes out but the user's interrupt."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        pass


def interrupt_of(error: BaseException) -> BaseException | None:
    """A new interrupt of this kind, if it is one: without words, notes and attributes, with the number of an exit."""
    if isinstance(error, SystemExit):
        code = error.code if type(error.code) is int or error.code is None else 1
        return SystemExit(code).with_traceback(error.__traceback__)
    kind = next((one for one in (KeyboardInterrupt, GeneratorExit) if isinstance(error, one)), None)
    return kind and kind().with_traceback(error.__traceback__)


def _untold(error: BaseException) -> PpdpError:
    """What takes the place of an error that may quote a cell, with its lines."""
    if is_of_a_full_disk(error):
        return no_room("entrance").with_traceback(error.__traceback__)
    return StageFailed(
        f"it stopped with {type(error).__name__}, whose words may quote the rows and are not shown.",
        stage="entrance",
        fix="arrays, frames, tables or files as their libraries make them; try made-up rows of the same form.",
    ).with_traceback(error.__traceback__)


def _bare(error: BaseException, handled: BaseException | None) -> BaseException:
    """The exception without notes and variables of its frames, and without the ones behind it but what was handled."""
    traceback.clear_frames(error.__traceback__)
    vars(error).pop("__notes__", None)
    error.__cause__, error.__context__ = None, handled
    return error


def outside() -> int:
    """How many frames a warning stands above: the first that is not ppdp's."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(("ppdp.", "numpy", "contextlib")):
        frame, level = frame.f_back, level + 1
    return level


def is_silenced(kind: type[Warning]) -> bool:
    """Whether warnings of a kind are ignored whatever they say, so that nobody waits for their words."""
    if getattr(sys.flags, "context_aware_warnings", False):  # then others may stand in front of these filters
        return False
    for action, message, category, module, line in warnings.filters:
        if issubclass(kind, category):
            return action == "ignore" and not (message or module or line)
    return False


def called_from(module: str) -> bool:
    """Whether a function of this module is waiting for what runs now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None


_SHOWN = (
    "run the step on made-up rows of the same form to see them, alone: step.fit(X), or check_stage(stage) or"
    " check_mechanism(mechanism) of ppdp.testing for a class of your own."
)


@contextmanager
def at_step(name: str) -> Iterator[None]:
    """In this context step ``name`` looks at private rows: errors of others may quote them, and become StageFailed."""
    try:
        with named(name):
            yield
    except PpdpError:
        raise
    except Exception as error:
        if is_of_a_full_disk(error):
            raise no_room(name) from None
        what = f"it stopped with {type(error).__name__}, whose words may quote the rows and are not shown."
        raise StageFailed(what, stage=name, fix=_SHOWN) from None
