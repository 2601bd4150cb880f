"""Stages for some of the columns, side by side, as scikit-learn's ``ColumnTransformer`` has them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer as SklearnColumns
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.utils.validation import check_is_fitted

from ppdp.core.boundary import outside
from ppdp.core.checks import flag, shown
from ppdp.core.formula import AT
from ppdp.core.keywords import Answering
from ppdp.data.frames import readable
from ppdp.data.validation import validated
from ppdp.exceptions import DiagnosticWarning, InvalidParameter, UnknownStage
from ppdp.transformers.base import Stage
from ppdp.transformers.columns.column_choice import chosen_columns, frames_of
from ppdp.transformers.columns.column_group import ColumnGroup, NamedGroup
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.column_parts import (
    DROP,
    PASS,
    REST,
    ColumnPart,
    Named,
    laid_out,
    listed_columns,
    named_stages,
)
from ppdp.transformers.columns.column_subset import ColumnSplit, ColumnSubset
from ppdp.transformers.columns.maps import PublicMap, Unclipped


class ColumnTransformer(Answering, TransformerMixin, BaseEstimator):
    """Stages for some of the columns each, side by side: public, exact and noisy ones, planned together.

    A stage sees and pays for its own columns only. What stands behind it takes all columns, in the order of the
    transformers. Where one transformer fills missing values, the others may have some, too, unless they say that there
    are none: ``MeanImputer(max_missing=0)``.

    Parameters
    ----------
    transformers : list of (name, stages, columns)
        ``stages`` is a stage, a list of stages or of (name, stage) pairs, a pipeline of stages, "passthrough" or
        "drop"; ``columns`` a column, a list of names or positions, scikit-learn's ``make_column_selector``, or another
        function of names and types. A column stands in one transformer, unless all that take it begin with a public
        stage.
    remainder : {"drop", "passthrough"} or stages, default="drop"
        What becomes of columns that no transformer names.
    verbose_feature_names_out : bool, default=False
        Whether names of columns begin with that of their transformer, as ``"numbers__age"``.

    Attributes
    ----------
    transformers_ : list of (name, list of stages, columns)
        Once it is fitted alone.

    Raises
    ------
    InvalidParameter, UnknownStage
        In a plan or a fit, if a column stands in two transformers, or a stage acts on whole rows, as deduplicators do.

    Notes
    -----
    **Guarantee** (``docs/theory/column-groups.md``): neighbouring rows are matched once for all groups. What moves in
    one group stands beside what moves in the others, and what is released for a group is charged for its columns.

    A function that chooses columns does so once, when a table is given, and sees a frame of pandas with the same names
    and types without its rows: what it takes is as public as these. From there on these columns have names, also in new
    rows and on the certificate. A plan, which has no table, knows the names of its domain alone.

    As the first step of a pipeline it takes a table as it is: text, dates, truth values. Public stages at the beginning
    of a transformer (``MinMaxScaler(ranges=...)``, ``CategoryEncoder``, ``DateEncoder``, ``RowMap``) are one map of all
    columns, and bound them. Fitted alone, outside a pipeline, statistics are exact and private.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppdp.transformers import CategoryEncoder, MeanImputer, MinMaxScaler
    >>> X = pd.DataFrame({"age": [20.0, None, 60.0], "sex": ["F", "M", "F"]})
    >>> ColumnTransformer(
    ...     [
    ...         ("numbers", [MinMaxScaler(ranges=(0, 100)), MeanImputer()], ["age"]),
    ...         ("text", CategoryEncoder([["F", "M"]], other=None), ["sex"]),
    ...     ]
    ... ).fit_transform(X).round(6)
    array([[-0.6,  1. ,  0. ],
           [-0.2,  0. ,  1. ],
           [ 0.2,  1. ,  0. ]])
    """

    bounds_rows = True  # by the stages at the beginning of its transformers, or it refuses rows without a bound

    def __init__(self, transformers: Any, *, remainder: Any = DROP, verbose_feature_names_out: bool = False) -> None:
        self.transformers = transformers
        self.remainder = remainder
        self.verbose_feature_names_out = verbose_feature_names_out

    @classmethod
    def example(cls) -> Any:
        """An instance that works on any numeric data, for contract tests."""
        from ppdp.transformers import NormClipper, RandomProjection

        return cls([("drawn", [NormClipper(1.0), RandomProjection(1)], [0])], remainder=NormClipper(1.0))

    @property
    def by_function(self) -> bool:
        """Whether a function chooses columns."""
        given = self.transformers if isinstance(self.transformers, (list, tuple)) else ()
        return any(_is_part(one) and callable(one[2]) for one in given)

    def with_names(self, table: Any) -> Any:
        """The same with names in place of functions, of columns of a table or of those that a domain has."""
        if not self.by_function:
            return self
        frames, made = frames_of(table), copy(self)
        made.transformers = [
            (one[0], one[1], chosen_columns(one[0], one[2], frames)) if _is_part(one) and callable(one[2]) else one
            for one in self.transformers
        ]
        if frames:
            made._warn_of_left(self, list(frames[0].columns))
        return made

    def _warn_of_left(self, given: Any, names: list[str]) -> None:
        """Warn of functions that take no column, or leave out some whose ranges are declared: types may be others."""
        parts, chosen = self.parts(), {one[0] for one in given.transformers if callable(one[2])}
        taken = {names[at] if isinstance(at, int) and at < len(names) else at for p in parts for at in p.columns or ()}
        for part in parts:
            if part.name in chosen and not part.columns:
                what = "a function chooses its columns, and takes none. Fix: types as X.dtypes has them; or a list."
                warnings.warn(f"stage {part.name!r}: {what}", DiagnosticWarning, stacklevel=outside())
            ranges = getattr(part.stages[0][1], "ranges", None) if part.stages else None
            left = [name for name in names if isinstance(ranges, Mapping) and name in ranges and name not in taken]
            if part.name in chosen and left:
                what = f"a function chooses its columns, and leaves out {shown(left)}, whose ranges are declared."
                fix = "of numbers, pd.to_numeric(X[column]), if it goes by types; or a list."
                warnings.warn(f"stage {part.name!r}: {what} Fix: {fix}", DiagnosticWarning, stacklevel=outside())

    def parts(self) -> list[ColumnPart]:
        """Its transformers and what becomes of the other columns, checked as far as no column need be known."""
        given = self.transformers
        if not isinstance(given, (list, tuple)) or not given or any(not _is_part(one) for one in given):
            what = "transformers must be a list of (name, stages, columns)."
            raise InvalidParameter(what, fix=_FIX, parameter="transformers")
        names = [name for name, _, _ in given]
        wrong = next((n for n in names if not n or not n.isprintable() or "__" in n or "." in n or AT in n), None)
        if wrong is not None or REST in names or len(set(names)) < len(names):
            what = "names of transformers must differ, be no 'remainder', and hold no '__', '.' or '@'."
            raise InvalidParameter(what, fix="other names.", parameter="transformers")
        flag("verbose_feature_names_out", self.verbose_feature_names_out, self)
        found = [ColumnPart(name, listed_columns(columns, name), _stages(one, name)) for name, one, columns in given]
        return [*found, ColumnPart(REST, None, _stages(self.remainder, REST))]

    def planned_steps(self, name: str, *, first: bool) -> list[Named]:
        """The steps of a plan that it is: a public map, the split into groups, and stages for one group each.

        ``first`` if it is the first step of the pipeline, so that a table comes in as it is.
        """
        parts = self.with_names(None).parts()
        dropped = [part.columns for part in parts if part.stages is None and part.columns]
        kept, maps, tails = laid_out(name, parts, first=first)
        steps: list[Named] = []
        if any(maps.values()):
            blocks = [self._block(part, maps[part.name]) for part in kept]
            steps.append((name, ColumnMap((*blocks, *(ColumnGroup(columns, drop=True) for columns in dropped)))))
            if tails:
                steps.append((f"{name}-split", ColumnSplit([(part.name, None) for part in kept])))
        else:
            listed = [column for columns in dropped for column in columns]
            steps.append((name, ColumnSplit([(part.name, part.columns) for part in kept], listed)))
        return [*steps, *((own, ColumnSubset(stage, part.name)) for part, (own, stage) in tails)]

    def planned_names(self, name: str, *, first: bool) -> list[str]:
        """The names of these steps, whatever columns they take."""
        _, maps, tails = laid_out(name, self.parts(), first=first)
        return [name, *([f"{name}-split"] if any(maps.values()) else []), *(own for _, (own, _) in tails)]

    def _block(self, part: ColumnPart, leading: int) -> NamedGroup:
        """The public maps at the beginning of a part."""
        assert part.stages is not None
        maps: list[PublicMap] = []
        for _, stage in part.stages[:leading]:
            if part.columns is None:
                what = f"{type(stage).__name__} is public for columns that are named."
                raise InvalidParameter(what, stage=REST, fix="a transformer of its own for these columns.")
            maps += stage.column_maps(part.columns)
        behind = part.stages[leading:]
        if not any(one.bounds for one in maps) and behind and behind[0][1].bounds_rows:
            maps.insert(0, Unclipped())
        prefix = f"{part.name}__" if self.verbose_feature_names_out else ""
        return NamedGroup(part.columns, tuple(maps), prefix, part.columns is None, group=part.name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters and, if ``deep``, those of the stages as ``name__parameter``, or ``name__stage__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for key, stage in self._stages_by_key():
                params[key] = stage
                params |= {f"{key}__{inner}": value for inner, value in stage.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters, stages, and those of stages by the names of :meth:`get_params`."""
        own = super().get_params(deep=False)
        for key in params.keys() & own.keys():
            setattr(self, key, params[key])
        for key, value in sorted(params.items(), key=lambda pair: pair[0].count("__")):
            stages = dict(self._stages_by_key())
            if key in own:
                continue
            if key in stages:
                self.transformers, self.remainder = _exchanged((self.transformers, self.remainder), stages[key], value)
                continue
            owner = max((one for one in stages if key.startswith(f"{one}__")), key=len, default=None)
            if owner is None:
                what = f"Invalid parameter {key!r} for estimator ColumnTransformer."
                raise InvalidParameter(what, fix=f"one of {sorted(stages)}.")
            stages[owner].set_params(**{key.removeprefix(f"{owner}__"): value})
        return self

    def _stages_by_key(self) -> Iterator[Named]:
        """Its stages by the names of their parameters; tolerant, because they are checked in ``fit``."""
        given = self.transformers if isinstance(self.transformers, (list, tuple)) else ()
        for name, one in [*((one[0], one[1]) for one in given if _is_part(one)), (REST, self.remainder)]:
            if isinstance(one, BaseEstimator) and not hasattr(one, "steps"):
                yield name, one
            elif not isinstance(one, str):
                for inner, stage in named_stages(one):
                    if isinstance(stage, BaseEstimator):
                        yield f"{name}__{inner}", stage

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit without noise, every stage on what those before it make of its columns.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit without noise, and map the same rows; takes and raises what :meth:`fit` does."""
        given = self.with_names(X)
        X = self._checked(X, reset=True)
        self.alone_ = given._alone()
        made = self.alone_.fit_transform(X, y)
        self.transformers_ = self.alone_.transformers_
        return made

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """A table, of which the form is checked."""
        X = readable(X)
        validated(self, X, dtype=None, ensure_all_finite=False, reset=reset)
        return X

    def _alone(self) -> Any:
        """Scikit-learn's, of the same stages."""
        parts = {part.name: part for part in self.parts()}
        made = {name: DROP if part.stages is None else _chain(part.stages) for name, part in parts.items()}
        rest = made.pop(REST)
        listed = [(name, one, parts[name].columns) for name, one in made.items()]
        return SklearnColumns(
            listed, remainder=rest, sparse_threshold=0, verbose_feature_names_out=self.verbose_feature_names_out
        )

    def transform(self, X: Any) -> Any:
        """Map rows.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        if not hasattr(self, "twins_"):
            return self.alone_.transform(self._checked(X, reset=False))
        made = self.twins_[0][1].transform(X)
        for _, twin in self.twins_[1:]:
            made = twin.map_rows(np.asarray(made, dtype=np.float64), twin.held())
        return made

    def held_by(self, twins: Sequence[Named]) -> Any:
        """A copy that maps rows by the released twins of the stages that it is in a plan."""
        fitted, first = clone(self), twins[0][1]
        fitted.twins_, fitted.n_features_in_ = list(twins), first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            fitted.feature_names_in_ = first.feature_names_in_
        return fitted

    def named_columns(self) -> tuple[str, ...] | None:
        """Names of the columns, for a plan without data; None if not all are named, or if their order matters."""
        names: tuple[str, ...] | None = self.planned_steps("", first=True)[0][1].named_columns()
        return names

    def instead(self) -> Iterator[tuple[str, Any]]:
        """What may take its place where no route leads through it: one stage with public parameters in place of one."""
        for key, stage in self._stages_by_key():
            for words, other in stage.instead():
                changed = clone(self)
                own = dict(changed._stages_by_key())[key]
                changed.transformers, changed.remainder = _exchanged(
                    (changed.transformers, changed.remainder), own, other
                )
                yield f"{words} for {key!r}", changed

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose the container of mapped rows ("default", "pandas", "polars")."""
        super().set_output(transform=transform)
        for _, stage in self._stages_by_key():
            stage.set_output(transform=transform)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        check_is_fitted(self)
        if hasattr(self, "twins_"):
            names = input_features
            for _, twin in self.twins_:
                names = twin.get_feature_names_out(names)
            return np.asarray(names, dtype=object)
        return np.asarray(self.alone_.get_feature_names_out(input_features), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformers_") or hasattr(self, "twins_")

    def _sk_visual_block_(self) -> Any:
        return self._alone()._sk_visual_block_()


def _chain(stages: Sequence[Named]) -> Any:
    """Unfitted copies of stages, one after the other."""
    return SklearnPipeline([(name, clone(stage)) for name, stage in stages]) if stages else PASS


def _is_part(one: Any) -> bool:
    return isinstance(one, (list, tuple)) and len(one) == 3 and isinstance(one[0], str)


def _stages(given: Any, part: str) -> list[Named] | None:
    """The stages of a part; None drops its columns."""
    if isinstance(given, str) and given in (PASS, DROP):
        return [] if given == PASS else None
    found = named_stages(given)
    for _, stage in found:
        if isinstance(stage, ColumnTransformer):
            what = "a ColumnTransformer stands in a transformer."
            raise UnknownStage(what, stage=part, fix="one with more transformers.")
        if isinstance(stage, type) or not isinstance(stage, Stage):
            what = shown(stage) if isinstance(stage, str) else f"{type(stage).__module__}.{type(stage).__qualname__}"
            raise UnknownStage(
                f"{what} is not a ppdp stage.",
                stage=part,
                fix='stages of ppdp.transformers, "passthrough" or "drop"; Pipeline.from_sklearn(pipe, ...) takes'
                " scikit-learn's.",
            )
    return found


_FIX = '[("numbers", [MinMaxScaler(ranges=...), StandardScaler()], ["age"]), ("text", CategoryEncoder(...), ["sex"])].'


def _exchanged(given: Any, own: Any, other: Any) -> Any:
    """The same with another stage in the place of one, however deep it stands."""
    if given is own:
        return other
    if isinstance(given, (list, tuple)):
        return type(given)(_exchanged(one, own, other) for one in given)
    if hasattr(given, "steps"):
        given.steps = _exchanged(given.steps, own, other)
    return given
