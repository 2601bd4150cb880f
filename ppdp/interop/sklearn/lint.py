"""Which stages of a scikit-learn workflow look at the rows, what that tells, and what to use instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass
from html import escape
from typing import Any

from ppdp.core.keywords import warn_of_name
from ppdp.exceptions import InvalidParameter
from ppdp.interop.sklearn.known_estimators import CHOOSES, CONTAINERS, SEVERITIES, UNREADABLE, Leak
from ppdp.interop.sklearn.leaks import is_whole, leak_of, leak_of_container, root_of
from ppdp.interop.sklearn.steps import DEEPEST, is_named
from ppdp.transformers.columns.column_parts import named_stages
from ppdp.transformers.columns.column_transformer import ColumnTransformer


@dataclass(frozen=True, slots=True)
class Finding:
    """One estimator of a workflow.

    Attributes
    ----------
    step : str
        Where it stands, names joined by ``__`` as in ``set_params``; empty for the workflow itself.
    estimator : str
        Its class.
    severity : {"none", "declared", "low", "high"}
        "none": it looks at no value. "declared": the same, if the user is right about something that nobody can check.
        "low": averages of all rows, in which one row shifts what leaves, and every other row, by a share of about 1/n.
        "high": one row can decide what leaves, or rows are contained in it.
    leaks : str
        What the fitted estimator tells about the rows.
    counterpart : str
        What ppdp has instead; empty if nothing.
    fix : str
        What to do.
    """

    step: str
    estimator: str
    severity: str
    leaks: str
    counterpart: str
    fix: str

    @property
    def twin(self) -> str:
        """The earlier name of ``counterpart``."""
        warn_of_name("twin of a finding", "counterpart")
        return self.counterpart

    @property
    def looks(self) -> bool:
        """Whether it looks at the values of the rows, as far as is known."""
        return self.severity in ("low", "high")


@dataclass(frozen=True, slots=True)
class LintReport:
    """What :func:`lint` found, every estimator that does something, in the order of the workflow; prints as a table."""

    findings: tuple[Finding, ...]

    @property
    def severity(self) -> str:
        """That of the worst finding."""
        return max((found.severity for found in self.findings), key=SEVERITIES.index, default="none")

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"severity": self.severity, "findings": [{**asdict(f), "looks": f.looks} for f in self]}

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for found in self:
            counterpart, fix = ("", "") if found.severity == "none" else (found.counterpart, found.fix)
            yield found.step, found.estimator, found.severity, found.leaks, counterpart, fix

    def __repr__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self._title(), title_justify="left")
        for name in _HEADS:
            table.add_column(name, overflow="fold")
        for cells in self._cells():
            table.add_row(*cells)
        console = Console(width=140, color_system=None, force_jupyter=False)
        with console.capture() as captured:
            console.print(table, markup=False)
        return captured.get().rstrip()

    def _title(self) -> str:
        looking = sum(found.looks for found in self)
        declared = sum(found.severity == "declared" for found in self)
        word = f", {declared} {'is' if declared == 1 else 'are'} taken at your word" if declared else ""
        return f"{looking} of {len(self)} stages look at the rows{word}; worst: {self.severity}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in _HEADS)
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in cells) for cells in self._cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><caption>{escape(self._title())}</caption><tr>{head}</tr>{body}</table>"


_HEADS = ("stage", "class", "severity", "what it reveals", "counterpart in ppdp", "what to do")


def lint(estimator: Any) -> LintReport:
    """List every step of a pipeline, what it reveals about the rows it is fitted on, and its counterpart in ppdp.

    Nothing is fitted, and nothing that was fitted is looked at: only classes and parameters. A function among them is
    run on made-up rows; what these cannot show, and what a function of your own holds on to, is declared.

    Parameters
    ----------
    estimator : estimator
        A pipeline, search, ensemble or single estimator, of scikit-learn, imbalanced-learn or anybody.

    Returns
    -------
    Report
        A table; ``report.severity`` is the worst of it. What cannot be read is "high".

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler, Normalizer
    >>> report = lint(make_pipeline(MinMaxScaler(), Normalizer()))
    >>> [(found.step, found.severity, found.counterpart) for found in report]
    [('minmaxscaler', 'high', 'MinMaxScaler'), ('normalizer', 'none', 'RowMap')]
    """
    if not is_estimator(estimator):
        what = f"an estimator is needed, got {type(estimator).__name__}."
        raise InvalidParameter(what, fix="pass an instance, such as a pipeline.")
    return LintReport(tuple(_walk(estimator, "", frozenset(), covered=False)))


def _walk(estimator: Any, step: str, above: frozenset[int], *, covered: bool) -> Iterator[Finding]:
    """Findings of an estimator and of all in its parameters; ``covered`` by the certificate of a ppdp pipeline."""
    contains = _container(estimator) is not None
    leak = leak_of_container(estimator) if contains else leak_of(estimator, covered=covered)
    if leak is not None:
        yield Finding(step, type(estimator).__name__, *astuple(leak))
    covered = covered or (contains and root_of(estimator) == "ppdp" and not isinstance(estimator, ColumnTransformer))
    above |= {id(estimator)}
    for name, inner, leak in _inside(estimator):
        where = f"{step}__{name}" if step else name
        if leak is None and (id(inner) in above or len(above) > DEEPEST or not is_estimator(inner)):
            leak = UNREADABLE
        if leak is None:
            yield from _walk(inner, where, above, covered=covered)
        else:
            yield Finding(where, type(inner).__name__, *astuple(leak))


Inner = tuple[str, Any, Leak | None]  # name, what stands there, and what is known of it without a closer look


def _inside(estimator: Any) -> Iterator[Inner]:
    """What stands in its parameters, unless it is taken as a whole, as a ``FrozenEstimator`` is."""
    if is_whole(estimator):
        return
    holder = _container(estimator)
    try:
        parameters = estimator.get_params(deep=False)
    except Exception:  # somebody else's class; it was reported as unknown
        parameters = {}
    for name, value in parameters.items():
        if name == holder:
            yield from _members(name, value, 3 if holder == "transformers" else 2, ours=root_of(estimator) == "ppdp")
        elif is_estimator(value):
            yield name, value, None
        elif (name == "estimator" and value is not None) or (isinstance(value, type) and hasattr(value, "fit")):
            yield name, value, UNREADABLE
        elif holder is None and issubclass(type(value), list | tuple):
            yield from _listed(value)
    if holder is not None and holder not in parameters:
        yield holder, estimator, UNREADABLE


def _members(parameter: str, members: Any, size: int, *, ours: bool) -> Iterator[Inner]:
    """The named members of a container, and whatever is none; ``ours`` shows no cell to what chooses columns."""
    if not issubclass(type(members), list | tuple):
        yield parameter, members, UNREADABLE
        return
    for position, member in enumerate(members):
        if not is_named(member, size):
            yield str(position), member, UNREADABLE
            continue
        name, inner, *columns = member
        if columns and callable(columns[0]) and not ours:
            yield name, columns[0], CHOOSES
        if size == 3 and issubclass(type(inner), list | tuple):
            yield from ((f"{name}__{label}", one, None) for label, one in named_stages(inner))
        elif not (inner is None or (issubclass(type(inner), str) and inner in ("drop", "passthrough"))):
            yield name, inner, None


def _listed(value: Any) -> Iterator[Inner]:
    """Estimators in a list, by name if they have one."""
    for position, item in enumerate(value):
        named = issubclass(type(item), list | tuple) and len(item) >= 2 and issubclass(type(item[0]), str)
        label, inner = (item[0], item[1]) if named else (str(position), item)
        if is_estimator(inner):
            yield label, inner, None


def _container(estimator: Any) -> str | None:
    """The parameter in which a container has its members; None for any other estimator."""
    known = root_of(estimator) in ("sklearn", "imblearn", "ppdp")
    return CONTAINERS.get(type(estimator).__name__) if known else None


def is_estimator(value: Any) -> bool:
    """Whether something looks like an estimator, and is no class."""
    try:
        fitted = hasattr(value, "fit") or hasattr(value, "privacy_map")  # a mechanism is fitted by its pipeline
        return not isinstance(value, type) and hasattr(value, "get_params") and fitted
    except Exception:  # somebody else's class may raise anything
        return False
