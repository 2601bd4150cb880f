"""An existing pipeline of scikit-learn as steps of ppdp, and the way into a pipeline from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

from sklearn.pipeline import Pipeline as SklearnPipeline

from ppdp.core.checks import check_budget, shown
from ppdp.core.domain import Domain, check_domain
from ppdp.exceptions import InvalidParameter, MissingBound, PpdpError
from ppdp.interop.sklearn.columns import (
    Split,
    hoisted,
    split_columns,
    steps_ahead,
    without_late_ranges,
    without_needless,
)
from ppdp.interop.sklearn.converter import Conversion, Converter
from ppdp.interop.sklearn.counterparts import counterpart, in_even_units, is_public, public_maps
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.entrance_ranges import check_bounds
from ppdp.interop.sklearn.leaks import root_of
from ppdp.interop.sklearn.schema import with_picked
from ppdp.interop.sklearn.steps import flattened, is_named
from ppdp.interop.sklearn.trees import with_codes
from ppdp.transformers.columns.column_choice import frame_of_types
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.spread_steps import spread, with_names

_CONTAINERS = ("ColumnTransformer", "FeatureUnion")


def convert(estimator: Any, facts: DeclaredFacts, reserved: frozenset[str]) -> tuple[list[tuple[str, Any]], Conversion]:
    """Steps of a ppdp pipeline, none of which has a reserved name, and what became of what.

    Only classes and parameters are looked at, never what was fitted. All refused steps are in one error.
    """
    if isinstance(estimator, type) or not hasattr(type(estimator), "get_params"):
        what = f"a pipeline of scikit-learn is needed, got {shown(estimator)}."
        raise InvalidParameter(what, fix="pass an instance of sklearn.pipeline.Pipeline.")
    if facts.ranges is not None and facts.max_norm is not None:
        what = "ranges and max_norm are both given."
        raise InvalidParameter(what, fix="give one bound at the entrance.", parameter="ranges")
    steps = without_needless(with_codes(with_picked(flattened("", estimator), facts), facts))
    steps = hoisted(in_even_units(steps) if facts.max_norm is None else steps)
    ahead = steps_ahead(steps)
    front, rest = steps[:ahead], steps[ahead:]
    errors: list[PpdpError] = []
    container, entrance = None, Split([], front)
    if rest and rest[0].kind in _CONTAINERS and root_of(rest[0].estimator) != "ppdp":
        container = rest.pop(0)
    rest = without_late_ranges(rest)
    with _collected(errors):
        if container is None:
            columns = facts.labels_alone(front)
            entrance.blocks = [ColumnGroup(columns, public_maps(front, columns, facts))]
        else:
            entrance = split_columns(container, facts, front, rest)
            errors += entrance.errors
    facts = facts.with_numbers(entrance.blocks)
    counterparts: dict[int, Any] = {}
    inside = [(step, False) for _, tail in entrance.groups for step in tail]
    rest = [*entrance.tail, *rest]
    for step, last in [*inside, *((step, step is rest[-1]) for step in rest)]:
        with _collected(errors):
            counterparts[id(step)] = None if is_public(step) else counterpart(step, facts, last=last)
    if container is not None or all(isinstance(error, MissingBound) for error in errors):
        with _collected(errors):  # what is refused might bound all rows
            check_bounds(entrance.blocks, rest, facts, plain=container is None)
    facts.refuse(errors)
    converter = Converter(facts, reserved, entrance.uneven, dict(entrance.groups))
    late = {id(step) for step, _ in inside}
    public = [step for step in entrance.inside if is_public(step) and id(step) not in late]
    converter.add_entrance(public, entrance.blocks, rest, container)
    for step in entrance.tail:
        converter.add(step, counterparts[id(step)])
    if container is not None and entrance.groups:
        converter.add_groups(container, counterparts)
    for step in rest[len(entrance.tail) :]:
        converter.add(step, counterparts[id(step)])
    first = converter.steps[0][1] if converter.steps else None
    unused = facts.check_used(first.blocks if isinstance(first, ColumnMap) else ())
    return converter.steps, Conversion(tuple(converter.report), unused)


@contextmanager
def _collected(errors: list[PpdpError]) -> Iterator[None]:
    try:
        yield
    except PpdpError as error:
        errors.append(error)


class FromSklearn:
    """Mixin for the pipeline: made from one of scikit-learn, or with steps of scikit-learn among its own."""

    steps: Any
    domain: Any
    _conversion: Conversion | None = None

    @property
    def conversion(self) -> Conversion | None:
        """What became of each step of scikit-learn; None if there is none."""
        return self._conversion or self._translated(self.steps)[1]

    def __sklearn_clone__(self) -> Any:
        cloned = super().__sklearn_clone__()  # type: ignore[misc]  # of the estimator that this is mixed into
        cloned._conversion = self._conversion
        return cloned

    def own_steps(self, steps: Any = None) -> Any:
        """The steps with twins for those of scikit-learn, and each ``ColumnTransformer`` as the stages that it is.

        Only classes and parameters are looked at; what is declared is that of the domain and of ppdp's own steps.
        ``steps`` are its own with names of columns; by default those that the domain tells.
        """
        return spread(self._translated(with_names(self.steps, self.domain) if steps is None else steps)[0])

    def _translated(self, steps: Any) -> tuple[Any, Conversion | None]:
        given = steps if isinstance(steps, (list, tuple)) else ()
        made = [part[1] for part in given if is_named(part, 2) and not isinstance(part[1], type)]
        if not any(root_of(step) in ("sklearn", "imblearn") for step in made):
            return steps, None
        domain = self.domain if isinstance(self.domain, Domain) else Domain()
        reserved = frozenset(signature(type(self)).parameters)
        call = "Pipeline.from_sklearn(sklearn.pipeline.Pipeline(steps), "
        return convert(SklearnPipeline(list(steps)), DeclaredFacts(domain=domain, call=call), reserved)

    @classmethod
    def from_sklearn(
        cls,
        pipe: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        ranges: Any = None,
        max_norm: float | None = None,
        classes: Sequence[Any] | None = None,
        y_range: Sequence[float] | None = None,
        categories: str | Mapping[Any, Any] | None = None,
        functions: Mapping[str, Any] | None = None,
        rows_per_unit: int | None = None,
        types: Any = None,
        domain: Domain | None = None,
        **options: Any,
    ) -> Any:
        """A scikit-learn pipeline with every step replaced by its counterpart: ``docs/guides/existing-pipelines.md``.

        Only classes and parameters are looked at, never what was fitted. What has no counterpart is refused, with what
        to do; ``pipe.conversion`` tells what became of each step.

        Parameters
        ----------
        pipe : Pipeline or estimator
            Of scikit-learn or imbalanced-learn.
        epsilon, delta : float, default=1.0 and 1e-6
            As for the class.
        ranges : "private", mapping, pair, or sequence of pairs, optional
            Public (low, high) of the columns that hold numbers. Those of all of them, or in a mapping of some, may be
            ``"private"``: found in the rows, with noise, so a plan pays for them.
        max_norm : float, optional
            Public norm of a row, instead of ``ranges``; longer rows are clipped.
        classes : sequence of labels, optional
            Public labels, if the pipeline ends in a classifier.
        y_range : pair, optional
            Public range of the targets, if it ends in a regressor.
        categories : "private" or mapping, optional
            Public categories by column, for encoders that declare none. Those of all columns, or in a mapping of some,
            may be ``"private"``, or ``{"private": 50}`` where there are up to 50: released with noise. For those of a
            column ``{"hashed": 64}`` are buckets of a public hash, at no cost.
        functions : mapping, optional
            Public range of what a ``FunctionTransformer`` returns, by step.
        rows_per_unit : int, optional
            Most rows that one person has, as in ``Domain(rows_per_unit=...)``. Default: that of the domain, else 1.
        types : mapping or pyarrow.Schema, optional
            Public types of the columns, ``X.dtypes``, by which a ``make_column_selector``, or a function of names and
            types, chooses, and which tell what columns stand at positions.
        domain, **options
            Parameters of the class.

        Raises
        ------
        PpdpError
            Naming the steps that have no counterpart, or a declared fact that no step asks for, and what to do.
        """
        check_domain(domain)
        check_budget(epsilon, delta, 1)
        domain = _with_units(domain, rows_per_unit)
        known = {} if categories is None else categories, functions or {}, domain or Domain(), frame_of_types(types)
        facts = DeclaredFacts(ranges, max_norm, classes, y_range, *known)
        steps, conversion = convert(pipe, facts, frozenset(signature(cls).parameters))
        kind: Any = cls
        made = kind(steps, epsilon=epsilon, delta=delta, domain=domain, **options)
        made._conversion = conversion
        return made


def _with_units(domain: Domain | None, rows_per_unit: int | None) -> Domain | None:
    """The domain with the number of rows that one person may have, which is declared once."""
    if rows_per_unit is None:
        return domain
    declared = Domain(rows_per_unit=rows_per_unit).rows_per_unit
    if domain is not None and (domain.rows_per_unit not in (1, declared) or not domain.adjacency.bounded):
        what = f"rows_per_unit={declared} and domain.rows_per_unit={domain.rows_per_unit} are both declared."
        raise InvalidParameter(what, fix="declare it once.", parameter="rows_per_unit")
    return (domain or Domain()).but(rows_per_unit=declared)
