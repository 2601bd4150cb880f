"""Trees, forests and boosting of scikit-learn: all become gradient boosting with noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ppdp.core.checks import integer, number, shown
from ppdp.core.domain import Domain
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.steps import Step, is_word, own_name
from ppdp.mechanisms import GradientBoostingClassifier, GradientBoostingRegressor
from ppdp.mechanisms.boosting.columns import MOST_CATEGORIES
from ppdp.mechanisms.boosting.estimators import INTERACTIONS
from ppdp.transformers.columns.categories import Encoded, OneHot, ReleasedCategories
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.maps import PublicMap, Unclipped

FAMILIES = ("DecisionTree", "ExtraTree", "ExtraTrees", "RandomForest", "GradientBoosting", "HistGradientBoosting")
_KINDS = ("Classifier", "Regressor")
_ENSEMBLES = frozenset(f"{family}{kind}" for family in ("AdaBoost", "Bagging") for kind in _KINDS)
TREES = _ENSEMBLES | {f"{family}{kind}" for family in FAMILIES for kind in _KINDS}
_SIZES = (
    "bootstrap ccp_alpha l2_regularization max_features max_leaf_nodes max_samples min_impurity_decrease "
    "min_samples_leaf min_samples_split min_weight_fraction_leaf splitter"
)
"""How far trees follow the rows; here released numbers tell."""
_UNUSED = "alpha criterion init oob_score quantile scoring"
_READ = "categorical_features class_weight interaction_cst loss max_bins max_depth monotonic_cst n_estimators"
_WEIGHTS = "class_weight={label: weight} of public knowledge, or leave it out: probabilities are right without it."
_CATEGORIES = "columns that an encoder codes, and no others, hold categories: each has a bin of its own, in no order"
_NUMBERS = (
    "codes of categories count as numbers, in their order: an OrdinalEncoder in a ColumnTransformer directly in front, "
    "with named columns, declared ranges and no scaler, makes them categories"
)


def with_codes(steps: list[Step], facts: DeclaredFacts) -> list[Step]:
    """With codes of declared categories in front of boosting that takes text of a frame as it is."""
    named = isinstance(facts.categories, Mapping) and all(isinstance(name, str) for name in facts.categories)
    if not (named and facts.categories and len(steps) == 1 and steps[0].kind.startswith("HistGradientBoosting")):
        return steps
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = ColumnTransformer([("codes", codes, list(facts.categories))], remainder="passthrough")
    return [Step("columns", columns), *steps]


def boosted(step: Step, facts: DeclaredFacts) -> Any:
    """Boosted shapes of columns and of pairs of them."""
    if step.kind in _ENSEMBLES:
        return _ensemble(step, facts)
    given = step.read(_READ, _SIZES, _UNUSED, "max_iter")
    classifies = step.kind.endswith("Classifier")
    _check_loss(step, given, classifies)
    rounds = next((name for name in ("max_iter", "n_estimators") if name in given), None)
    step.changed.append("trained with noise: it adds up shapes of columns and tables of two columns, in place of trees")
    if rounds:
        step.changed.append(f"rounds follow from the noise, not from {rounds}={given[rounds]!r}")
    settings = {
        "max_bins": _bins(step, given),
        "interaction_cst": _interactions(step, given),
        "monotonic_cst": _directions(step, given),
    }
    _ignore(step, f"{_SIZES} {_UNUSED}")
    if not classifies:
        return GradientBoostingRegressor(facts.y_range, **settings, **_loss_of_targets(step, given))
    weights = given.get("class_weight")
    if is_word(weights, "balanced", "balanced_subsample"):
        step.changed.append("class_weight='balanced' goes by noisy numbers of rows of each class")
        weights = "balanced"
    elif not (weights is None or isinstance(weights, Mapping)):
        step.refuse(f"class_weight={shown(weights)} has no counterpart.", _WEIGHTS)
    elif weights is not None:
        step.changed.append("class_weight is kept")
    return GradientBoostingClassifier(facts.classes, class_weight=weights, **settings)


def _ensemble(step: Step, facts: DeclaredFacts) -> Any:
    """Bagging and adaptive boosting of trees, as a forest of them."""
    given = step.read("estimator", "n_estimators", _SIZES, _SAMPLES)
    inner, classifies = given["estimator"], step.kind.endswith("Classifier")
    kind = "Classifier" if classifies else "Regressor"
    if inner is not None and own_name(inner) not in (f"DecisionTree{kind}", f"ExtraTree{kind}"):
        fix = f"DecisionTree{kind}(), or {own_name(inner) or 'the model'} alone, without the {step.kind}."
        step.refuse("only ensembles of trees have a counterpart: every model in it looks at the rows.", fix)
    depth = inner.get_params(deep=False)["max_depth"] if inner is not None else 1 if step.kind == _STUMPS else None
    tree = DecisionTreeClassifier(max_depth=depth) if classifies else DecisionTreeRegressor(max_depth=depth)
    read = Step(step.name, tree)
    made = boosted(read, facts)
    _ignore(step, f"{_SIZES} {_SAMPLES}")
    step.changed += [*read.changed, f"rounds follow from the noise, not from n_estimators={given['n_estimators']!r}"]
    return made


_STUMPS = "AdaBoostClassifier"
_SAMPLES = "algorithm bootstrap_features loss oob_score"


def _check_loss(step: Step, given: Mapping[str, Any], classifies: bool) -> None:
    """Log loss, and the losses of targets that boosting has; how forests choose splits is not asked."""
    name = "loss" if "loss" in given else "criterion"
    others = ("gini", "entropy", "exponential") if classifies else ("friedman_mse", "huber", *_LOSSES)
    known = ("log_loss" if classifies else "squared_error", *others)
    if not is_word(given[name], *known):
        step.refuse(f"{name}={given[name]!r} has no counterpart.", f"{name}='{known[0]}'.")
    if given[name] != known[0] and given[name] not in _LOSSES:
        step.changed.append(f"{known[0]} instead of {given[name]}")
    init = given.get("init")
    if not (init is None or is_word(init, "zero")):
        step.refuse("init is a model of its own, which would look at the rows.", "init=None.")


_LOSSES = ("absolute_error", "gamma", "poisson", "quantile")  # of targets, beside squared error


def _loss_of_targets(step: Step, given: Mapping[str, Any]) -> dict[str, Any]:
    """The loss, and which quantile it is for."""
    loss = given.get("loss", given.get("criterion"))
    if loss not in _LOSSES:
        return {}
    if loss != "quantile":
        return {"loss": loss}
    quantile = given["quantile"] if "quantile" in given else given["alpha"]
    return {"loss": loss, "quantile": number("quantile", quantile, step.name, above=0, most=1 - 1e-9)}


def _ignore(step: Step, names: str) -> None:
    """List parameters that differ from their defaults, and mean nothing here."""
    plain = type(step.estimator)().get_params(deep=False)
    told = [name for name, value in step.given().items() if name in names.split() and repr(value) != repr(plain[name])]
    step.ignored += told
    if set(told) & set(_SIZES.split()):
        step.changed.append("how far it follows the rows is told by released numbers, not by sizes of trees and leaves")


def _bins(step: Step, given: Mapping[str, Any]) -> Any:
    """Cells of a column: a power of two, or as the noise allows."""
    if given.get("max_bins", 255) == 255:
        return "auto"
    most = integer("max_bins", given["max_bins"], step.name, least=2, most=255)
    cells = max(4, 2 ** round(math.log2(most)))
    step.changed.append(f"max_bins={most} became {cells} equal cells of each public range")
    return cells


def _interactions(step: Step, given: Mapping[str, Any]) -> str | None:
    """Whether there are tables of two columns; None if released numbers decide."""
    allowed, depth = given.get("interaction_cst"), given["max_depth"]
    if allowed is None and depth == 1 and not isinstance(depth, bool):
        step.changed.append("max_depth=1 became interaction_cst='no_interactions'")
        return "no_interactions"
    if depth is not None:
        step.changed.append(f"tables have two columns at most, instead of max_depth={depth!r}")
    if not is_word(allowed, None, *INTERACTIONS):
        fix = "interaction_cst='pairwise' or 'no_interactions', or leave it out."
        step.refuse("interaction_cst as sets of columns has no counterpart.", fix)
    return None if allowed is None else str(allowed)


def _directions(step: Step, given: Mapping[str, Any]) -> Any:
    """With which columns predictions must rise or fall; what is no such thing is refused by the model."""
    directions = given.get("monotonic_cst")
    if directions is None:
        return None
    step.changed.append("monotonic_cst is kept: no table has one of these columns")
    with step.reading():
        return dict(directions) if isinstance(directions, Mapping) else np.asarray(directions).tolist()


def only_trees(steps: Sequence[Step]) -> bool:
    """Whether nothing but trees is there."""
    return [step.kind in TREES for step in steps] == [True]


def as_codes(block: ColumnGroup, trees: Step) -> ColumnGroup:
    """The same with codes in place of a column for each category, unless trees name columns by their places."""
    last = block.maps[-1] if block.maps and trees.given().get("monotonic_cst") is None else None
    if isinstance(last, OneHot) and max(map(len, last.categories)) <= MOST_CATEGORIES:
        made: PublicMap = Encoded(last.categories, last.gap, last.expects, last.step, unknown=-1.0, missing=-1.0)
    elif isinstance(last, ReleasedCategories):
        made = replace(last, hot=False)
    else:
        return block
    return replace(block, maps=(*block.maps[:-1], made))


def holds_codes(block: ColumnGroup) -> bool:
    """Whether an encoder makes codes of its columns, and nothing behind it changes them."""
    last = block.maps[-1] if block.maps and not block.drop else None
    return isinstance(last, Encoded) or (isinstance(last, ReleasedCategories) and not last.hot)


def numbers_of_categories(first: ColumnMap, domain: Domain) -> dict[int, int] | None:
    """How many categories each column of codes has, by its position behind the stage.

    None if positions are unknown, or if other columns leave [-1, 1], where numbers beside codes are taken to lie.
    """
    names = domain.feature_names or first.named_columns()
    count = len(names) if names is not None else _width(first)
    if count is None or any(isinstance(one, Unclipped) for block in first.blocks for one in block.maps):
        return None
    numbers: dict[int, int] = {}
    place = 0
    for block, _, facts in first.located_in(names, count, math.nan, None):
        out = facts[-1].ranges
        if holds_codes(block):
            numbers |= {place + i: int(high) + 1 for i, high in enumerate(out[:, 1])}
        elif not (np.abs(out) <= 1).all():
            return None
        place += len(out)
    return numbers


def _width(first: ColumnMap) -> int | None:
    """Of a table without names, as far as columns are taken by position; None if that is unknown."""
    block = first.blocks[0]
    if len(first.blocks) == 1 and block.columns is None and isinstance(block.maps[-1], Encoded):
        return len(block.maps[-1].categories)
    listed = [
        column
        for block in first.blocks
        if not block.rest
        for column in (block.columns if isinstance(block.columns, (list, tuple)) else [block.columns])
    ]
    keys = list(first.ranges) if isinstance(first.ranges, Mapping) else []
    if not all(isinstance(column, int) and not isinstance(column, bool) and column >= 0 for column in [*listed, *keys]):
        return None
    ordered = len(first.ranges) if isinstance(first.ranges, (list, np.ndarray)) else 0
    return max(ordered, 1 + max([*listed, *keys]))


def told_of_columns(step: Step, made: Any, coded: bool) -> None:
    """Say what became of categories."""
    asked = not is_word(step.given().get("categorical_features"), None, "from_dtype")
    if asked or coded or made.categorical_features:
        words = _CATEGORIES if made.categorical_features else _NUMBERS
        step.changed.append(f"categorical_features: {words}" if asked else words)
