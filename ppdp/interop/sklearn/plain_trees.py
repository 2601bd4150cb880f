"""Boosted shapes and tables as trees of scikit-learn: one for every column, and one for every table of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, StackingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.multiclass import OneVsRestClassifier

from ppdp.interop.sklearn import plain_objects as plain
from ppdp.mechanisms.boosting.model import AdditiveModel, Table

Leaf = Callable[["Tree", int, float], int]
"""Adds to a tree what stands below a node of this depth, where a part of all rows is, and tells its number."""

WHOLE, TINY = 2**31, 1e-300  # rows that a tree says it has seen, in the released shares of the values


def classifier(step: Any) -> Any:
    """The trees of a classifier; of several classes those of each against all others."""
    models = step.models_
    if len(models) == 1:
        return _boosting(HistGradientBoostingClassifier, models[0], step.classes_)
    inner = HistGradientBoostingClassifier(max_iter=1)
    with_rows = OneVsRestClassifier(inner).fit(np.zeros((len(step.classes_), step.n_features_in_)), step.classes_)
    made = [_boosting(HistGradientBoostingClassifier, model, np.array([0, 1])) for model in models]
    return plain.with_attributes(with_rows, estimators_=made)


def regressor(step: Any) -> Any:
    """The trees of a regressor, in the units of what it learned; behind a clip if they reach beyond its range."""
    (model,), (low, high) = step.models_, step.learned_range_
    half, centre, ends = high / 2 - low / 2, low / 2 + high / 2, np.array([low, high])
    extremes = np.array(model.extremes)
    if step.log_link:
        trees = _boosting(partial(HistGradientBoostingRegressor, loss="poisson"), model, ends)
        with np.errstate(over="ignore"):
            least, most = np.exp(extremes)
    else:
        trees = _boosting(HistGradientBoostingRegressor, model, ends, half, centre)
        least, most = centre + half * extremes
    if least >= low and most <= high:
        return trees
    d = step.n_features_in_
    line = plain.model(LinearRegression(), np.ones(2), 1, coef_=np.ones(1), intercept_=0.0)
    clipped = plain.joined([plain.box(np.array([low]), np.array([high])), line])
    stacked = StackingRegressor([("trees", trees)], clipped, cv="prefit")
    return plain.with_attributes(
        stacked.fit(np.zeros((2, d)), np.array([low, high])), final_estimator_=clipped, estimators_=[trees]
    )


def trees_of(model: AdditiveModel) -> list[Tree]:
    """A tree for every column that has a shape, and for every table; they are added to the baseline."""
    trees = [_of_shape(model, column) for column, shape in enumerate(model.shapes) if shape.any()]
    return trees + [_of_table(model, table) for table in model.tables() if table.values.any()]


def _boosting(kind: Any, model: AdditiveModel, answers: Any, scale: float = 1.0, shift: float = 0.0) -> Any:
    """Fitted to rows of zeros, before it gets its trees."""
    trees = trees_of(model)
    fitted = kind(max_iter=max(len(trees), 1), learning_rate=1.0, early_stopping=False)
    fitted.fit(np.zeros((len(answers), len(model.shapes))), answers)
    (template,) = vars(fitted)["_predictors"][0]  # scikit-learn has no public name for them
    return plain.with_attributes(
        fitted,
        _baseline_prediction=np.array([[shift + scale * model.baseline]]),
        _predictors=[[tree.predictor(template, scale)] for tree in trees],
    )


@dataclass(slots=True)
class Tree:
    """Nodes of a tree as they are added, each a dictionary of what scikit-learn's nodes hold; the first is the root."""

    nodes: list[dict[str, Any]] = field(default_factory=list)

    def leaf(self, value: float, depth: int, part: float) -> int:
        """Add a leaf for a part of all rows."""
        self.nodes.append({"value": value, "count": max(1, round(part * WHOLE)), "depth": depth, "is_leaf": 1})
        return len(self.nodes) - 1

    def split(self, test: tuple[int, float], depth: int, parts: tuple[float, float], below: Leaf, above: Leaf) -> int:
        """Add a test of a column by a threshold, and what stands below and above it: what is missing is above."""
        place = len(self.nodes)
        self.nodes.append({"feature_idx": test[0], "num_threshold": test[1], "depth": depth})
        left, right = below(self, depth + 1, parts[0]), above(self, depth + 1, parts[1])
        count = self.nodes[left]["count"] + self.nodes[right]["count"]
        self.nodes[place] |= {"left": left, "right": right, "count": count}
        return place

    def predictor(self, template: Any, scale: float) -> Any:
        """As scikit-learn holds it."""
        made = np.zeros(len(self.nodes), template.nodes.dtype)
        for node, values in zip(made, self.nodes):
            for name, value in values.items():
                node[name] = value
        made["value"] *= scale
        return plain.with_attributes(deepcopy(template), nodes=made)


def _of_shape(model: AdditiveModel, column: int) -> Tree:
    tree, shape = Tree(), model.shapes[column]
    _by_column(model, column, shape, [_leaf(value) for value in shape])(tree, 0, 1.0)
    return tree


def _of_table(model: AdditiveModel, table: Table) -> Tree:
    tree, columns = Tree(), list(table.groups.items())

    def below(values: Any, axis: int) -> Leaf:
        """What stands where the groups of the first columns are known."""
        if axis == len(columns):
            return _leaf(values.item())
        column, groups = columns[axis]
        leaves = [below(own, axis + 1) for own in values]
        return _by_column(model, column, groups, [leaves[group] for group in groups])

    below(table.values, 0)(tree, 0, 1.0)
    return tree


def _leaf(value: float) -> Leaf:
    return lambda tree, depth, part: tree.leaf(value, depth, part)


def _by_column(model: AdditiveModel, column: int, kinds: NDArray[Any], leaves: Sequence[Leaf]) -> Leaf:
    """Halve the values of a column until a cell is told, as far as neighbours are of different kinds.

    Parts of the rows are those that were released, so that what weighs leaves by them sees the rows of the release.
    """
    thresholds, codes = model.cells.regions(column)
    *_, missing = shares = model.shares[column]
    ends = np.flatnonzero(np.diff(kinds[codes]) != 0)
    starts = np.append(0, ends + 1)
    present = np.where(codes == len(shares) - 1, 0.0, shares[codes])  # what is no category counts as missing
    up_to = np.append(0.0, np.cumsum(np.add.reduceat(present, starts)))

    def halved(low: int, high: int) -> Leaf:
        """Regions from one to another."""
        if low == high:
            return leaves[codes[starts[low]]]
        middle = (low + high) // 2
        share = (up_to[middle + 1] - up_to[low]) / max(up_to[high + 1] - up_to[low], TINY)
        test = column, thresholds[ends[middle]]
        return _split(test, share, halved(low, middle), halved(middle + 1, high))

    return _split((column, np.inf), 1 - missing, halved(0, len(ends)), leaves[-1])


def _split(test: tuple[int, float], share: float, below: Leaf, above: Leaf) -> Leaf:
    """A test, below which a share of the rows stands that come to it."""
    return lambda tree, depth, part: tree.split(test, depth, (part * share, part * (1 - share)), below, above)
