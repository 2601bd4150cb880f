"""A map of columns as fitted objects of scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, NoReturn

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
)

from ppdp.data.cells import has_one_spelling
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError
from ppdp.interop.sklearn import plain_objects as plain
from ppdp.transformers.columns.categories import (
    Categorical,
    FillMode,
    OneHot,
    OrdinalCodes,
    ReleasedCategories,
    is_gap,
    labels_only,
)
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.columns.features import FourierFeatures, Landmarks, PolynomialTerms, Splines
from ppdp.transformers.columns.hashing_vectorizer import HashedWords
from ppdp.transformers.columns.maps import (
    ClipToRange,
    ColumnFacts,
    FillConstant,
    FunctionMap,
    PublicMap,
    RangeScale,
    Unclipped,
)
from ppdp.transformers.columns.quantile_maps import WIDEST_SCORE

COMPLETE = (FourierFeatures, Landmarks, PolynomialTerms, Splines)
"""Maps whose counterparts in scikit-learn take no missing values."""


def plain_columns(name: str, counterpart: Any, names: Sequence[str] | None, *, gaps: bool) -> FeatureUnion:
    """The fitted objects for a frame of these columns, or an array, side by side; ``gaps`` may pass through."""
    d = counterpart.n_features_in_
    chains: list[list[Any]] = []
    for block, positions, facts in counterpart.located():
        encoder = next((step for step in block.maps if not isinstance(step, FillMode)), None)
        if isinstance(encoder, HashedWords):
            chains += [_hashed(name, block, at, d, names) for at in positions]
        elif isinstance(encoder, OrdinalCodes | ReleasedCategories | Categorical):  # each column by itself
            own = [([at], _encoder(name, block, facts[0], place)) for place, at in enumerate(positions)]
            chains += [[plain.select(at, d, names), *made] for at, made in own]
        else:
            chains.append([plain.select(positions, d, names), *_block(name, block, facts, gaps=gaps)])
    return FeatureUnion([(f"columns{i}", make_pipeline(*chain)) for i, chain in enumerate(chains)])


def _hashed(name: str, block: ColumnGroup, at: int, d: int, names: Sequence[str] | None) -> list[Any]:
    """Words of one column of texts, in which nothing is missing."""
    words = block.maps[0]
    if not isinstance(words, HashedWords) or len(block.maps) > 1:
        _refuse(name, "its words are mapped further.", "a step behind it.")
    clip = [] if words.max_norm is None else [plain.norm_clip(words.max_norm, words.n_features)]
    return [plain.texts(words.vectorizer(), at, d, names), *clip]


def _block(name: str, block: ColumnGroup, facts: Sequence[ColumnFacts], *, gaps: bool) -> list[Any]:
    """The maps of a block, one after the other, behind the clip to its ranges."""
    parts = _clip(name, block, facts[0], block.maps[:1])
    for i, (step, given) in enumerate(zip(block.maps, facts), start=1):
        if isinstance(step, ClipToRange):
            parts += _clip(name, block, given.after(step), block.maps[i : i + 1])
        elif not isinstance(step, Unclipped):
            if gaps and isinstance(step, COMPLETE):
                message = "missing values pass through it to an imputer, and scikit-learn's refuses them."
                _refuse(step.step or name, message, "the imputer in front of it; export() takes every step.")
            parts.append(_map(name, step, given))
            gaps = gaps and not isinstance(step, FillConstant)
    return parts or [plain.scaler(*np.tile([[0.0], [1.0]], len(facts[0].names)))]


def _clip(name: str, block: ColumnGroup, known: ColumnFacts, then: Sequence[PublicMap]) -> list[Any]:
    """The clip to ranges, where there are some and the next map does not clip to them."""
    low, high = known.ranges.T
    bounded = np.isfinite(known.ranges)
    if not bounded.any() or any(isinstance(step, RangeScale) and step.target is not None for step in then):
        return []
    if not bounded.all() or not (high > low).all():
        _refuse(name, f"not every one of {block.described} has a range.", "ranges= for all of them.")
    return [plain.box(low, high)]


def _labels(encoder: Any) -> Sequence[Sequence[Any]]:
    """The labels of every column, as cells hold them."""
    if isinstance(encoder, ReleasedCategories):
        return encoder.found or ()
    return encoder.labels if isinstance(encoder, OrdinalCodes) else [*map(labels_only, encoder.categories)]


def _encoder(name: str, block: ColumnGroup, facts: ColumnFacts, place: int) -> list[Any]:
    """An encoder of one column, by trying what becomes of each label and kind of gap: it is added to that of others."""
    first, *later = (step for step in block.maps if not isinstance(step, FillMode))
    if not all(isinstance(step, OneHot) for step in later):
        _refuse(name, "its categories are mapped further.", "a step behind it.")
    own: list[Any] = [_alone(step, place) for step in block.maps]
    encoder = own[-1 - len(later)]
    labels = [*next(iter(_labels(encoder)), ())]
    if isinstance(first, ReleasedCategories) and not (labels and all(map(has_one_spelling, labels))):
        _refuse(
            name,
            "of a column no category was released, or one with several spellings: a number or a truth value.",
            "declare its categories, or leave it out.",
        )
    if len({isinstance(label, str) for label in labels}) > 1:
        _refuse(name, "the categories of a column are text and numbers.", "declare one of the two.")
    cells, rows = _tried(name, encoder, labels)
    given = ColumnFacts(facts.names[place : place + 1], facts.ranges[place : place + 1], math.nan)
    for step in own:
        rows = step.apply(rows, given)
    other, added = rows[-1], rows[:-1] - rows[-1]
    if np.isnan(added).any():
        _refuse(name, "a missing value stays missing behind it.", "encoded_missing_value=-1, or a OneHotEncoder.")
    needed = added.any(axis=1)
    needed[0] = True  # an encoder knows at least one label
    matrix = added[needed]
    parts = [_found([[cell for cell, keep in zip(cells, needed) if keep]])]
    if isinstance(cells[0], float):  # as numbers whatever their type, and None as NaN
        parts = [plain.scaler(np.zeros(1), np.ones(1)), *_clip(name, block, given, ()), *parts]
    if not np.array_equal(matrix, np.eye(len(matrix))):
        parts.append(plain.linear(matrix))
    if other.any():
        parts.append(plain.scaler(-other, np.ones(len(other))))
    return parts


def _alone(step: Any, place: int) -> Any:
    """The map of one of its columns."""
    if isinstance(step, FillMode):
        modes = None if step.modes is None else step.modes[place : place + 1]
        return replace(step, values=step.values[place : place + 1], modes=modes)
    if isinstance(step, OrdinalCodes):
        return replace(step, labels=step.labels[place : place + 1])
    if isinstance(step, ReleasedCategories):
        return replace(step, found=() if step.found is None else step.found[place : place + 1])
    dropped = {"dropped": step.dropped[place : place + 1]} if isinstance(step, OneHot) else {}
    return replace(step, categories=step.categories[place : place + 1], **dropped)


def _tried(
    name: str, encoder: OrdinalCodes | ReleasedCategories | Categorical, labels: Sequence[Any]
) -> tuple[list[Any], Array]:
    """The labels of a column and what is missing, as cells; and their codes, the last one that of any other cell."""
    import pandas as pd

    reading = encoder.reading(0)
    if reading is None:
        numbers = [*sorted(map(float, labels)), math.nan]
        return numbers, np.array([*numbers, math.inf])[:, None]
    empty = dict.fromkeys(["", encoder.missing or ""]) if isinstance(encoder, ReleasedCategories) else ()
    cells = [*labels, *empty, None, math.nan]
    return cells, np.asarray(reading.codes(pd.Series([*cells, object()], dtype=object), name))[:, None]


def _map(name: str, step: PublicMap, given: ColumnFacts) -> Any:
    """One map."""
    low, high = given.ranges.T
    if isinstance(step, FillConstant):
        return plain.imputer(given.middle if step.value is None else np.full(len(low), float(step.value)))
    if isinstance(step, RangeScale) and step.target is not None and (high > low).all():
        return plain.range_scaler(low, high, step.target)
    if isinstance(step, RangeScale) and step.target is None:
        largest = np.abs(given.ranges).max(axis=1)
        return plain.scaler(np.zeros(len(low)), np.where(largest > 0, largest, 1.0))
    if isinstance(step, Splines):
        return step.fitted(given)
    if isinstance(step, FourierFeatures | Landmarks | PolynomialTerms):
        return _features(step, given)
    if isinstance(step, FunctionMap) and step.rises:
        return FunctionTransformer(step.function).fit(np.zeros((1, len(low))))
    numbers = isinstance(step, OneHot) and step.gap is None and all(map(_ascend, step.categories))
    if isinstance(step, OneHot) and numbers and not step.dropped:
        return _found([list(map(float, labels)) for labels in step.categories])
    _refuse(
        step.step or name,
        "it does with some cells what no object of scikit-learn does.",
        "numbers with ranges and constants for missing values, CategoryEncoder, and OneHotEncoder have plain "
        "counterparts.",
    )


def _features(step: FourierFeatures | Landmarks | PolynomialTerms, given: ColumnFacts) -> Any:
    """Products of columns, and kernels by the public draws that the map makes."""
    width = len(given.names)
    row = np.zeros((1, width))
    if isinstance(step, PolynomialTerms):
        given_by = {"interaction_only": step.interaction_only, "include_bias": step.include_bias}
        return PolynomialFeatures(step.degree, **given_by).fit(row)
    count, gamma = step.n_components, 1.0 / width if step.gamma is None else float(step.gamma)
    if isinstance(step, FourierFeatures):
        directions, offset = step.waves(width)
        waves = RBFSampler(gamma=gamma, n_components=count).fit(row)
        return plain.with_attributes(waves, random_weights_=directions.T, random_offset_=offset)
    rows = step.landmarks(given)
    powers = {"degree": step.degree, "coef0": step.coef0} if step.kernel == "poly" else {}
    similar = Nystroem(step.kernel, gamma=gamma, n_components=count, **powers).fit(rows)
    turn = {"components_": rows, "component_indices_": np.arange(count), "normalization_": step.turn(rows)}
    return plain.with_attributes(similar, **turn)


def _found(categories: list[list[Any]]) -> Any:
    """A column for every category of every column; any other cell is a row of zeros."""
    import pandas as pd

    encoder = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False, dtype=np.float64)
    first = {
        i: np.array([labels[0]], dtype=object if isinstance(labels[0], str) else np.float64)
        for i, labels in enumerate(categories)
    }
    return encoder.fit(pd.DataFrame(first))


def _ascend(labels: Sequence[Any]) -> bool:
    """Whether categories are numbers in the order that scikit-learn takes, none of them NaN."""
    return not any(isinstance(label, str) or is_gap(label) for label in labels) and all(
        a < b for a, b in pairwise(labels)
    )


def _refuse(name: str, message: str, fix: str) -> NoReturn:
    raise ExportError(message, stage=name, fix=fix)


def bins(step: Any) -> Any:
    """Bins, a column of 0 and 1 for each or their numbers; a value that is an edge is in the lower one here too."""
    encode = "onehot-dense" if step.encode == "onehot" else "ordinal"

    def made(edges: Array) -> Any:
        count, d = edges.shape[0] + 1, edges.shape[1]
        rows = np.linspace(0.0, 1.0, count)[:, None] * np.ones(d)
        fitted = KBinsDiscretizer(count, encode=encode, strategy="uniform").fit(rows)
        above = np.nextafter(edges, np.inf)
        infinite = np.full((1, d), np.inf)
        ends = np.empty(d, dtype=object)
        ends[:] = list(np.vstack([-infinite, above, infinite]).T)
        return plain.with_attributes(fitted, bin_edges_=ends)

    return _of_columns(step, made)


def ranks(step: Any) -> Any:
    """Ranks, or normal scores that are clipped."""
    parts = len(step.edges_) + 1
    levels = np.array([0.0, 0.0, *np.arange(1, parts) / parts, 1.0, 1.0])
    normal = step.output_distribution == "normal"

    def made(edges: Array) -> Any:
        end = np.full((1, edges.shape[1]), step.reach_)
        knots = np.vstack([-end - 1, -end, edges, end, end + 1])  # scikit-learn takes what reaches the last for an end
        fitted = QuantileTransformer(n_quantiles=len(knots), output_distribution=step.output_distribution).fit(knots)
        fitted = plain.with_attributes(fitted, quantiles_=knots, references_=levels)
        limits = np.full(edges.shape[1], WIDEST_SCORE)
        return make_pipeline(fitted, plain.box(-limits, limits)) if normal else fitted

    return _of_columns(step, made)


def splines(step: Any) -> Any:
    """Splines of the released knots."""
    return _of_columns(step, lambda edges: step.fitted(edges, step.reach_))


def _of_columns(step: Any, made: Any) -> Any:
    """What is made for the columns that a stage maps; the others stay in their places between them."""
    if step.columns_ is None:
        return made(step.edges_)
    own, d = {column: i for i, column in enumerate(step.columns_)}, step.n_features_in_
    parts = []
    for mapped, group in groupby(range(d), own.__contains__):
        run = list(group)
        objects = [made(step.edges_[:, [own[i] for i in run]])] if mapped else []
        parts.append((f"columns-{run[0]}", make_pipeline(plain.select(run, d), *objects)))
    return FeatureUnion(parts)


def naive_bayes(step: Any) -> Any:
    """The model with its released means, variances and shares of classes."""
    d, classes = step.theta_.shape[1], step.classes_
    fitted = GaussianNB().fit(np.zeros((len(classes), d)) + np.arange(len(classes))[:, None], classes)
    released = {name: getattr(step, name) for name in ("theta_", "var_", "class_prior_", "class_count_")}
    return plain.with_attributes(fitted, epsilon_=0.0, **released)
