"""The steps of a pipeline, checked: stages of ppdp's in an order that they allow, and the mechanism behind them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from ppdp.core.domain import Domain
from ppdp.core.names import shipped
from ppdp.data.frames import inner, width_of
from ppdp.exceptions import InvalidInput, InvalidParameter, UnknownStage, UnsupportedOrder
from ppdp.mechanisms.base import Mechanism
from ppdp.transformers.base import Stage
from ppdp.transformers.floor import DataAssumption

Named = tuple[str, Any]


def assumption_stages() -> dict[str, Any]:
    """Stages that mechanisms bring themselves, by class."""
    return {kind.__name__: kind for kind in DataAssumption.__subclasses__()}


@dataclass(frozen=True, slots=True)
class Steps:
    """Checked steps with their names: stages, with those that the mechanism brings, and the last step if it is one."""

    stages: list[Named]
    mechanism: Named | None
    given: Sequence[Named] = ()  # of a pipeline, with names of columns

    @property
    def last(self) -> Any:
        """The mechanism without its name."""
        return None if self.mechanism is None else self.mechanism[1]

    @property
    def all(self) -> list[Named]:
        """All of them."""
        return [*self.stages, *([] if self.mechanism is None else [self.mechanism])]

    @property
    def supervised(self) -> bool:
        """Whether the mechanism needs labels or targets."""
        return self.mechanism is not None and self.last.needs_y

    @property
    def regression(self) -> bool:
        """Whether these are targets."""
        return self.mechanism is not None and is_regressor(self.last)

    def coded(self, X: Any) -> Any:
        """A table with numbers for labels, if the first step knows public labels."""
        return coding_of(self.all[0][1])(X)

    @property
    def learned(self) -> Any:
        """The same for the rows of a fit, with the texts of which some are to be released; None if none are."""
        return getattr(self.all[0][1], "learned", None)


def as_it_is(X: Any) -> Any:
    """The map that changes nothing."""
    return X


def coding_of(step: Any) -> Any:
    """What puts numbers for labels, if a first step knows public labels, and changes nothing otherwise."""
    return getattr(step, "coded", None) or as_it_is


def reading_of(step: Any) -> Any:
    """The same, with the texts of columns that a first step maps whole, or None."""
    return getattr(step, "read_cells", None) or _without_texts


def _without_texts(X: Any) -> tuple[Any, None]:
    return X, None


def takes_texts(step: Any) -> bool:
    """Whether a first step maps whole texts, so that a column of them is a table."""
    return bool(getattr(step, "takes_texts", False))


def as_texts(step: Any, X: Any, y: Any = None) -> Any:
    """A list of cells as a column, in front of a step that maps texts or mappings; with named labels, one of paths.

    Of the cells no type decides: only rows of several, or paths that are no texts, in every place do, and rows only
    where they are no cells. Rows of several in half of the places are neither: no single one decides between the two.
    """
    if not isinstance(X, (list, tuple)) or not takes_texts(step) or isinstance(y, str):
        return X
    lists = getattr(step, "takes_lists", False)
    widths = [] if lists else [width_of(one) for one in X if issubclass(type(one), (list, tuple, np.ndarray))]
    several = sum(width > 1 for width in widths)
    if several and 2 * several >= len(X) and (several < len(X) or len(set(widths)) > 1):
        raise InvalidInput("X is a list of rows, and some are none, or of another length.", fix="rows of one length.")
    if several == len(X) or all(issubclass(type(one), os.PathLike) for one in X):
        return X
    return np.fromiter(X if lists else map(_unpacked, X), dtype=object, count=len(X))


def _unpacked(cell: Any) -> Any:
    """The cell of a row of one, else what it is."""
    return inner([*cell] if type(cell) is np.ndarray and cell.shape == (1,) else cell)


def any_fills_gaps(steps: Sequence[Named]) -> bool:
    """Whether some step fills missing values."""
    return any(bool(getattr(step, "fills_gaps", False)) for _, step in steps)


_ON_THE_PIPELINE = {
    "noise_scale": "leave it out: the pipeline solves the noise.",
    "random_state": "set it on the Pipeline.",
}


@lru_cache(maxsize=64)
def _parameters_of(cls: type) -> frozenset[str]:
    return frozenset(inspect.signature(cls).parameters)


_PAIRS = "Pipeline([('range', MinMaxScaler(...)), ...]), or make_pipeline(step, ...), which names them."


def check_steps(steps: Any, cls: type) -> Steps:
    """The steps of a pipeline of this class: a list of uniquely named pairs, all of ppdp's, a mechanism last."""
    if not isinstance(steps, (list, tuple)) or not steps:
        raise InvalidParameter("steps must be a non-empty list of (name, step) pairs.", fix=_PAIRS, parameter="steps")
    if any(not isinstance(item, (list, tuple)) or len(item) != 2 for item in steps):
        raise InvalidParameter("steps must be a list of (name, step) pairs.", fix=_PAIRS, parameter="steps")
    names = [name for name, _ in steps]
    if any(not isinstance(name, str) or not name.isprintable() or not name for name in names):
        raise InvalidParameter("names of steps must be strings of printable characters.", fix=_PAIRS)
    if any("__" in name or "." in name for name in names):
        raise InvalidParameter("names of steps must be strings without '__' and '.'.", fix=_PAIRS)
    parameters = _parameters_of(cls)
    if parameters & set(names):
        what = f"names of steps must not be those of parameters: {sorted(parameters & set(names))}."
        raise InvalidParameter(what, fix="other names.")
    if len(set(names)) != len(names):
        what = "names of steps must be unique."
        raise InvalidParameter(what, fix="another name for each, or make_pipeline(step, ...).")
    for position, (name, step) in enumerate(steps):
        if isinstance(step, Mechanism) and position < len(steps) - 1:
            raise UnknownStage("a mechanism must be the last step.", stage=name, fix="move it to the end.")
        if not isinstance(step, (Stage, Mechanism)):
            raise UnknownStage(f"{_described(step)} is not a ppdp stage.", stage=name, fix=_twin(step))
        if not shipped(type(step)):
            _check_constructor(name, step)
        if position and getattr(step, "reads_cells", False):
            raise UnsupportedOrder(
                "it reads text or dates, and behind another step there are none.",
                stage=name,
                fix="put it first; ColumnTransformer([(name, stages, columns), ...]) takes several side by side.",
            )
        labelled = isinstance(steps[-1][1], Mechanism) and steps[-1][1].needs_y
        if isinstance(step, Stage) and step.needs_y and not labelled:
            raise UnsupportedOrder(
                "it looks at labels, and the last step learns from none.",
                stage=name,
                fix="a model as the last step, such as LogisticRegression(classes=...).",
            )
    for name, step in steps[-1:]:
        for parameter, fix in _ON_THE_PIPELINE.items():
            if getattr(step, parameter, None) is not None:
                what = f"{parameter} has no effect inside a pipeline."
                raise InvalidParameter(what, stage=name, fix=fix, parameter=parameter)
    stages = [(name, apart(step)) for name, step in steps]
    last_name, last = stages[-1]
    if isinstance(last, Mechanism):
        return Steps([*stages[:-1], *_guarding(stages[:-1], last_name, last)], (last_name, last))
    return Steps(stages, None)


def apart(step: Any) -> Any:
    """A step of ppdp's, or a copy of one of another class: what this keeps of the rows ends with a fit."""
    inner = getattr(step, "stage", None)
    if isinstance(inner, Stage) and not shipped(type(inner)):  # in a group of columns
        step = copy(step)
        step.stage = _copied(inner)
    return step if shipped(type(step)) else _copied(step)


def _copied(step: Any) -> Any:
    """A copy down to what its parameters hold, which rows might be kept in as well."""
    with suppress(Exception):
        return deepcopy(step)
    what = "a parameter of it cannot be copied, and might keep rows."
    fix = "parameters that copy.deepcopy takes: numbers, texts, arrays, functions of a module."
    raise InvalidParameter(what, stage=type(step).__name__, fix=fix)


def _check_constructor(name: str, step: Any) -> None:
    """Refuse a class that alters a parameter, of which no copy can be made."""
    given = {parameter: getattr(step, parameter, _UNSET) for parameter in type(step)._get_param_names()}
    altered = [parameter for parameter, value in given.items() if value is _UNSET]
    if not altered:
        again = vars(type(step)(**given))
        altered = [parameter for parameter, value in given.items() if again.get(parameter, _UNSET) is not value]
    for parameter in altered:
        what = f"its __init__ does not keep the parameter {parameter} as it is given."
        fix = f"self.{parameter} = {parameter} and nothing else there; check it in fit_modes or query_spec."
        raise InvalidParameter(what, stage=name, fix=fix, parameter=parameter)


_UNSET: Any = object()


def check_unbounded(domain: Domain | None, stages: Sequence[Named]) -> None:
    """Refuse bounds of numbers in front of a step that reads text or dates: they would cut its codes."""
    if domain is None or not stages or not getattr(stages[0][1], "reads_cells", False):
        return
    if domain.row_norm is not None or domain.entry_bound is not None:
        what = "row_norm and entry_bound are bounds of numbers, and this step reads text or dates."
        fix = "leave them out of the domain: the step bounds its rows by itself."
        raise InvalidParameter(what, stage=stages[0][0], fix=fix, parameter="row_norm")


def guard_of(mechanism: Mechanism) -> Any:
    """The stage that says what a mechanism assumes of the rows; None if it assumes nothing."""
    if not mechanism.guard:
        return None
    kind, *shared = mechanism.guard
    return assumption_stages()[kind](**{name: getattr(mechanism, name) for name in shared})


def _guarding(stages: list[tuple[str, Any]], name: str, mechanism: Mechanism) -> list[tuple[str, Any]]:
    """That stage with a name, unless it stands there already (in steps that were loaded)."""
    guard = guard_of(mechanism)
    if guard is None or (stages and repr(stages[-1][1]) == repr(guard)):
        return []
    stage_name = f"{name}-floor"
    if stage_name in dict(stages):
        what = f"the name {stage_name!r} is that of a step which the mechanism brings itself."
        raise InvalidParameter(what, stage=name)
    return [(stage_name, guard)]


def _described(step: Any) -> str:
    kind = step if isinstance(step, type) else type(step)
    return repr(step) if isinstance(step, str) else f"{kind.__module__}.{kind.__qualname__}"


def _twin(step: Any) -> str:
    """What to use instead of somebody else's estimator."""
    from ppdp import mechanisms, transformers

    name = (step if isinstance(step, type) else type(step)).__name__
    if step is None or isinstance(step, str):
        return "leave this step out: a list of steps holds those alone that do something."
    if isinstance(step, type):
        return "pass an instance, not the class."
    if isinstance(step, tuple):
        return "Pipeline([...]) takes pairs, make_pipeline steps alone: facts.column_map() for *facts.steps()."
    if isinstance(step, list):
        return "make_pipeline(*steps), or Pipeline(steps) of pairs."
    if name == "SimpleImputer":
        name = "MeanImputer"
    if name in ("MaxAbsScaler", "MinMaxScaler"):
        return (
            "use ppdp.transformers.MinMaxScaler with public ranges=..., or with quantiles=(0.05, 0.95):"
            " one row decides the ends of the data, so that no test could ever find them stable."
        )
    for module in (transformers, mechanisms):
        if name in module.__all__:
            return f"use {module.__name__}.{name}."
    return (
        "use a stage of ppdp.transformers, RowMap(function, out_ranges=...) for a public row-wise map, or"
        " Public(transformer) for one that was fitted on public data."
    )
