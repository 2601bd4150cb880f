"""Where the public facts of a plan come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from sklearn.base import OneToOneFeatureMixin, is_regressor

from ppdp.core.adjacency import Adjacency
from ppdp.core.checks import classes_of, pair
from ppdp.core.closure_inspection import declared_of, functions_in
from ppdp.core.declared import plain
from ppdp.core.domain import Domain
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound

# Facts on somebody's word; the others are seen at fit.
_OF_THE_TABLE = ("n_rows", "n_features", "feature_names", "min_present")
_UNIT = ("rows_per_unit", "adjacency")
_ON_A_WORD = (*_UNIT, "row_norm", "entry_bound", "max_missing", "classes", "y_range", "max_weight")


@dataclass(frozen=True, slots=True)
class Fact:
    """A public fact with its origin."""

    name: str  # all three for people
    value: str
    origin: str
    public: bool = True  # false if it was read off the private data, which makes a certificate conditional
    step: str = ""  # which step it is a parameter of


def complete(
    declared: Domain | None,
    stages: Sequence[tuple[str, Any]],
    mechanism: Any,
    *,
    shape: tuple[int, int] | None = None,
    names: tuple[str, ...] | None = None,
    read_classes: tuple[Any, ...] | None = None,
) -> tuple[Domain, tuple[Fact, ...]]:
    """Complete a declared domain by the public rule, and say where each fact comes from.

    Shape and names are those of X at ``fit``; public, but for the number of rows where the adjacency hides it. Labels
    that were found in y (``read_classes``) are used only if no classes are declared anywhere.
    """
    domain, facts = _of_table(declared or Domain(), stages, shape, names)
    facts += _of_rows(domain, stages)
    domain, fact = _of_gaps(domain, [*stages, (type(mechanism).__name__, mechanism)])
    facts.append(fact)
    facts += [Fact(name, words, "declared") for name, stage in stages for words in stage.declarations()]
    facts += [Fact("mechanism", words, "declared") for words in getattr(mechanism, "declarations", tuple)()]
    facts += _kept_by_functions([*stages, ("mechanism", mechanism)])
    trusted: tuple[tuple[str, str], ...] = getattr(mechanism, "assumptions", tuple)()
    facts += [Fact("mechanism", what, whose, public=False) for what, whose in trusted]
    if getattr(mechanism, "needs_y", False):
        domain, fact = _answers(domain, mechanism, read_classes)
        facts.append(fact)
        if any(getattr(stage, "needs_y", False) for _, stage in stages):  # it goes by what labels are coded with
            domain = domain.but(**{"classes" if is_regressor(mechanism) else "y_range": None})
    if domain.n_rows is not None and domain.min_present > domain.n_rows:
        what = "Domain.min_present is larger than the number of rows."
        raise DomainMismatch(what, fix="leave it out.", parameter="min_present")
    if domain.n_rows is not None and domain.min_present == 0 and not domain.adjacency.unbounded:
        domain = domain.but(min_present=domain.n_rows)
    return domain, tuple(facts)


def _of_table(
    domain: Domain, stages: Sequence[tuple[str, Any]], shape: tuple[int, int] | None, names: tuple[str, ...] | None
) -> tuple[Domain, list[Fact]]:
    """The domain with the shape and the names of columns, and from where these are."""
    if domain.adjacency.unbounded and domain.n_rows is None:
        what = "the number of rows is private, so a cap on it must be declared."
        fix = f"pass Domain(n_rows=...): at least the {domain.adjacency.phrases.capped}; never len(X)."
        raise MissingBound(what, fix=fix, parameter="n_rows")
    origin, source = "shape of X", "schema of X"
    width = shape[1] if shape else None
    if shape is None:
        if domain.feature_names is None:
            names, source = _named_columns(stages, domain.n_features), "the columns that the first step names"
        if domain.n_features is None and (known := domain.feature_names or names):
            width, origin = len(known), source if names else "the declared names of columns"
    settled: list[tuple[str, Any, str]] = [
        ("n_rows", shape[0] if shape and not domain.adjacency.unbounded else None, "shape of X"),
        ("n_features", width, origin),
    ]
    if shape is None or names is not None or domain.feature_names is not None:
        settled.append(("feature_names", names, source))
    facts: list[Fact] = []
    for name, actual, whence in settled:
        domain, fact = _settled(domain, name, actual, whence)
        facts.append(fact)
    if domain.adjacency.by_position:
        adjacency = domain.adjacency.named(domain.feature_names)
        domain = domain.but(adjacency=adjacency, unit_declared=domain.unit_declared)
    return domain, facts


def _settled(domain: Domain, name: str, actual: Any, origin: str) -> tuple[Domain, Fact]:
    """The domain with a fact of X, which is refused if another one is declared."""
    known = getattr(domain, name)
    if known is not None and actual is not None and known != actual:
        shown = f"{known!r}, X has {actual!r}" if name != "feature_names" else "other columns than X has"
        what = f"the domain declares {name} = {shown}."
        raise DomainMismatch(what, fix="declare what the data have, or pass other data.", parameter=name)
    if known is None and actual is not None:
        domain = domain.but(**{name: actual})
    return domain, Fact(name, _shown(getattr(domain, name)), "declared" if known is not None else origin)


def _of_rows(domain: Domain, stages: Sequence[tuple[str, Any]]) -> Iterator[Fact]:
    """Who is protected, and what bounds a row."""
    if domain.adjacency.bounded:
        yield Fact("rows_per_unit", str(domain.rows_per_unit), "declared" if domain.unit_declared else "default")
    else:
        yield Fact("adjacency", domain.adjacency.words, "declared")
    if domain.row_norm is not None:
        yield Fact("row_norm", _shown(domain.row_norm), "declared; rows above it are clipped")
    else:
        bounding = next((name for name, stage in stages if getattr(stage, "bounds_rows", False)), None)
        yield Fact("row_norm", "follows from the stages", f"stage {bounding!r}" if bounding else "not declared")
    if domain.entry_bound is not None:
        yield Fact("entry_bound", _shown(domain.entry_bound), "declared; entries above it are clipped")
    if domain.max_weight is not None:
        yield Fact("max_weight", _shown(domain.max_weight), "declared; weights above it are clipped")
    if domain.min_present:
        yield Fact("min_present", str(domain.min_present), "declared")


def _of_gaps(domain: Domain, steps: Sequence[tuple[str, Any]]) -> tuple[Domain, Fact]:
    """Which rows may have missing values: none where no step fills them."""
    imputer = next((name for name, step in steps if getattr(step, "fills_gaps", False)), None)
    if imputer is None:
        return domain.but(max_missing=0), Fact(
            "gaps", "none", "no imputer in the steps; a missing value is an invalid one"
        )
    shown = "any row may have gaps" if domain.max_missing is None else f"at most {_shown(domain.max_missing)} rows"
    shown = "none" if domain.max_missing == 0 else shown
    return domain, Fact("gaps", shown, "declared" if domain.max_missing is not None else f"imputer {imputer!r}")


def merged(given: Domain | None, own: Domain | None) -> Domain | None:
    """Facts that are given for a plan, and what only the pipeline's own domain declares."""
    if given is None or own is None:
        return own if given is None else given
    default = Domain()
    names = [field.name for field in fields(Domain) if field.init or field.name == "unit_declared"]
    silent = [name for name in names if getattr(given, name) == getattr(default, name)]
    said = (*_OF_THE_TABLE, *(_UNIT if given.unit_declared else ()))
    kept = {name: getattr(own, name) for name in silent if name not in said}
    return given.but(**kept)


def with_adjacency(declared: Domain | None, adjacency: Adjacency | None) -> Domain | None:
    """Facts with the adjacency that a pipeline is given; refused if they name another one."""
    if adjacency is None:
        return declared
    domain = declared or Domain()
    if domain.unit_declared and domain.adjacency != adjacency:
        what = f"the domain protects {domain.adjacency.unit}, the pipeline {adjacency.unit}."
        raise InvalidParameter(what, fix="say it in one place.")
    return domain.but(adjacency=adjacency)


def check_matches_plan(promised: Domain | None, fitted: Domain) -> None:
    """Refuse a fit if what is known on somebody's word only differs from that of the last plan that was given facts."""
    hidden = promised is not None and promised.adjacency.unbounded
    for name in (*_ON_A_WORD, *(["n_rows"] if hidden else [])) if promised is not None else ():
        planned, found = getattr(promised, name), getattr(fitted, name)
        if name == "adjacency" and promised is not None:
            names = fitted.feature_names or promised.feature_names
            planned, found = planned.named(names), found.named(names)
        if planned != found and (planned, name) != (None, "classes"):
            what = f"the last plan was made for {name} = {_shown(planned)}, this fit has {_shown(found)}."
            fix = f"declare it where the fit finds it, Pipeline(domain=Domain({name}=...)), or plan again without."
            raise DomainMismatch(what, fix=fix)


def check_beside_names(adjacency: Adjacency, stages: Sequence[tuple[str, Any]], beside: str) -> None:
    """Refuse columns that are told by position where others are taken out of the table by name: positions shift."""
    shifted = f"columns are told by their position, and {beside} is a column of the table that is no feature."
    if adjacency.by_position:
        raise InvalidParameter(shifted, fix="Adjacency.change(coordinate={'age': 5.0, ...}), by names.")
    for name, stage in stages:
        if _takes_positions(stage):
            raise InvalidParameter(shifted, stage=name, fix="names of columns in this step.")
        if not isinstance(stage, OneToOneFeatureMixin):
            return


def _takes_positions(stage: Any) -> bool:
    """Whether some of the columns at its input are told by their position."""
    if any(block.ordered for block in getattr(stage, "blocks", ())):
        return True
    groups = [columns for _, columns in getattr(stage, "groups", ()) if columns]
    by_column = [getattr(stage, name, None) for name in ("ranges", "categories", "bins", "candidates")]
    chosen = [getattr(stage, name, None) for name in ("columns", "subset")]
    listed: list[Any] = [value for value in by_column if isinstance(value, Mapping)]
    listed += [value for value in chosen if isinstance(value, (list, tuple))]
    return any(isinstance(column, Integral) for columns in (*listed, chosen, *groups) for column in columns)


def taken_on_trust(steps: Iterable[tuple[str, Any, Domain]]) -> tuple[Fact, ...]:
    """A fact for every range and constant that the user declares for a step: nothing can tell where they are from."""
    return tuple(
        Fact(words, plain(value), f"{origin}, step {name!r}", step=name)
        for name, step, domain in steps
        for words, value, origin in getattr(step, "declared", lambda _: ())(domain)
    )


def _kept_by_functions(steps: Sequence[tuple[str, Any]]) -> list[Fact]:
    """What users' functions hold on to: it leaves with them, and nobody can tell where it was read."""
    return [
        Fact(name, words, "declared")
        for name, step in steps
        if hasattr(step, "get_params")
        for _, function in functions_in(step.get_params(deep=False), deep=True)
        if (words := declared_of(function)) is not None
    ]


def _answers(domain: Domain, mechanism: Any, read: tuple[Any, ...] | None) -> tuple[Domain, Fact]:
    """The classes of a classifier, or the range of a regressor's targets, which refuses to do without."""
    name, clipped = ("y_range", "; targets are clipped") if is_regressor(mechanism) else ("classes", "")
    own, known = getattr(mechanism, name, None), getattr(domain, name)
    if own is not None:
        own = pair(name, own, mechanism) if clipped else classes_of(name, own, mechanism)
        if known is not None and known != own:
            what, fix = ("ranges of y", "declare it once.") if clipped else ("classes", "declare them once.")
            raise DomainMismatch(f"the model and the domain declare different {what}.", fix=fix)
        return domain.but(**{name: own}), Fact(name, _shown(own), f"parameter of the model{clipped}")
    if known is not None:
        return domain, Fact(name, _shown(known), f"declared{clipped}")
    if clipped:
        return domain, Fact(name, _shown(known), "not declared")
    if read is not None:
        return domain.but(classes=read), Fact(name, _shown(read), "read from y: not public", public=False)
    return domain, Fact(name, "unknown before y", "not declared", public=False)


def _named_columns(stages: Sequence[tuple[str, Any]], count: int | None) -> tuple[str, ...] | None:
    """Columns that the first stage names, for a plan without data; there are as many of them as columns."""
    if not stages:
        return None
    stage = stages[0][1]
    ranges = getattr(stage, "ranges", None)
    names: tuple[str, ...] | None = None
    if hasattr(stage, "named_columns"):
        names = stage.named_columns()
    elif isinstance(ranges, Mapping) and not all(isinstance(name, int) for name in ranges):
        names = tuple(map(str, ranges))
    if names is not None and count not in (None, len(names)):
        what = f"columns are taken by name, and {len(names)} names are known for {count} columns."
        fix = f"Domain(n_rows=..., feature_names=({names[0]!r}, ...)) with the names of all columns of X, in order."
        raise InvalidParameter(what, stage=stages[0][0], fix=fix)
    return names


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(str(v) for v in value)
    return str(value)
