"""What boosted models say of themselves: shapes in raw units, and exact Shapley values."""

from functools import cache
from itertools import chain, combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.inspection import partial_dependence

from ppdp import PrivateSearchCV, make_pipeline
from ppdp.mechanisms import GradientBoostingClassifier, GradientBoostingRegressor
from ppdp.mechanisms.boosting import estimators, rounds
from ppdp.mechanisms.boosting.shapes import WEIGHT, Posterior
from ppdp.transformers import MinMaxScaler

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")

N, NAMES = 3000, ["age", "dose", "time"]
RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.uniform(0, 8, (N, 3)), columns=NAMES)
EFFECT = (ROWS["age"] - 4) * (ROWS["dose"] - 4) / 3 + ROWS["time"] / 2 - 2
LABELS = {"two": EFFECT > 0, "three": np.digitize(EFFECT, [-1, 1]), "targets": EFFECT}


@cache
def fitted(labels, trees=False):
    how, y = {"max_iter": 2, "max_bins": 4, "interaction_cst": None if trees else "pairwise"}, LABELS[labels]
    classes = tuple(np.unique(y).tolist())
    model = (
        GradientBoostingRegressor((-4, 4), **how) if labels == "targets" else GradientBoostingClassifier(classes, **how)
    )
    return make_pipeline(MinMaxScaler(ranges=(0, 8)), model, epsilon=20.0, delta=1e-6).fit(ROWS, y)


def shapley(model, cells):
    """By all coalitions: columns outside are drawn independently, by the shares of their cells."""
    d = len(cells)
    grid = [axis.ravel() for axis in np.meshgrid(*(np.arange(len(own)) for own in model.shares), indexing="ij")]
    scores = model.scores(grid)

    def expected(known):
        weights = [at == cells[j] if j in known else model.shares[j][at] for j, at in enumerate(grid)]
        return np.prod(weights, axis=0) @ scores

    values = []
    for column in range(d):
        others = [j for j in range(d) if j != column]
        coalitions = chain.from_iterable(combinations(others, k) for k in range(d))
        gain = [(len(c), expected({*c, column}) - expected({*c})) for c in coalitions]
        values.append(sum(factorial(k) * factorial(d - k - 1) / factorial(d) * change for k, change in gain))
    return values


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("labels", LABELS)
def test_shapley_values_are_those_of_all_coalitions(labels, trees, monkeypatch):
    monkeypatch.setattr(estimators, "TREES", {0.0: (6, 5)})
    for certain in ("CERTAIN", "MANY"):
        monkeypatch.setattr(rounds, certain, 0.0)  # so that trees say what tables would
    pipe, rows = fitted(labels, trees), ROWS[:200]
    model, X = pipe[-1], pipe[:-1].transform(rows)
    assert any(len(table.groups) > 1 for of_score in model.models_ for table in of_score.tables())
    assert any(values.any() for of_score in model.models_ for *_, values in of_score.trees) == trees
    values = model.shap_values(X)
    answers = pipe.predict(rows) if labels == "targets" else pipe.decision_function(rows)
    added = model.expected_value_ + values.sum(axis=1)
    np.testing.assert_allclose(np.clip(added, -4, 4) if labels == "targets" else added, answers, 0, 1e-9)
    codes = [column[:2] for column in model.models_[0].codes(X)]
    for at, cells in enumerate(zip(*codes)):
        found = values[at].reshape(3, -1) / (4.0 if labels == "targets" else 1.0)
        for score, of_score in enumerate(model.models_):
            np.testing.assert_allclose(found[:, score], shapley(of_score, cells), 0, 1e-9)


def test_shapes_have_the_units_of_the_table():
    pipe = fitted("two")
    lines = pipe.release_.to_pandas()
    for name in NAMES:
        own = lines[(lines["statistic"] == "shape") & (lines["column"] == name)]
        middle = pd.DataFrame(4.1, index=range(len(own)), columns=NAMES)
        middle[name] = (own["raw_low"] + own["raw_high"]).to_numpy() / 2
        cells = pipe[-1].models_[0].codes(pipe[:-1].transform(middle))[NAMES.index(name)]
        np.testing.assert_array_equal(pipe[-1].models_[0].shapes[NAMES.index(name)][cells], own["value"])
        assert (own["raw_low"].iloc[0], own["raw_high"].iloc[-2], own["category"].iloc[-1]) == (0, 8, "missing")
        assert (own["standard_error"] > 0).all()
    assert np.isnan(pipe.release_.conf_int()["lower"]).all()


def test_released_numbers_of_targets_are_in_their_unit():
    """In kilograms beside tons: a row's baseline, shapes and table are its prediction."""
    X, y = ROWS[:400], 1000 * EFFECT[:400]
    model = GradientBoostingRegressor((-4000, 4000), max_iter=1, max_bins=4, interaction_cst="no_interactions")
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 8)), model, epsilon=20.0, delta=1e-6).fit(X, y)
    lines, row = pipe.release_.to_pandas().set_index("statistic"), pd.DataFrame([[4.1] * 3], columns=NAMES)
    shapes = lines.loc["shape"]
    here = shapes[(shapes["raw_low"] <= 4.1) & (shapes["raw_high"] > 4.1)]
    total = here["raw_value"].sum() + lines.loc["baseline", "raw_value"]
    assert abs(total) > 10
    np.testing.assert_allclose(total, pipe.predict(row)[0], 1e-9)
    assert (here["raw_standard_error"] / here["standard_error"]).to_numpy() == pytest.approx([4000] * 3)
    assert lines["note"].str.contains("unit of the target").all()


def test_tables_name_what_their_groups_hold():
    pipe = fitted("two")
    model, lines = pipe[-1].models_[0], pipe.release_.to_pandas()
    own = lines[lines["statistic"] == "table"]
    assert len(own) == 25 * len(model.pairs)
    lines_of_pair = own[(own["column"] == "age, dose") & own["category"].str.endswith("; missing")]
    line = lines_of_pair[lines_of_pair["category"].str.contains(" to ")].iloc[1]  # of ages between the first two edges
    (table,) = (table for first, second, table in model.pairs if (first, second) == (0, 1))
    assert line.value == table[model.groups[0][1], model.groups[1][-1]]
    assert abs(line.value) < 2 * line.standard_error  # nobody's value is missing
    importances = lines[lines["statistic"] == "importance"]["value"]
    np.testing.assert_allclose(importances / importances.sum(), pipe[-1].feature_importances_)
    assert importances.iloc[:2].min() > 0.3 * importances.iloc[2]  # age and dose act together alone


def test_variances_of_parts_are_the_likeliest():
    """As likely as those that a search without derivatives ends with."""
    rng, count = np.random.default_rng(1), 12
    places = np.linspace(-1, 1, count)
    kernels = [np.outer(places, places), np.exp(-(np.subtract.outer(places, places) ** 2)), np.eye(count)]
    for scale in (0.0, 0.3, 30.0):
        sums, noise = 40 * scale * places + rng.normal(size=count), np.eye(count)
        curvature = np.full(count, 40.0)

        def unlikely(logs, sums=sums):
            matrix = np.eye(count) + 1600 * np.tensordot(np.exp(logs), kernels, 1)
            value = sums @ np.linalg.solve(matrix, sums) + np.linalg.slogdet(matrix)[1]
            return value / 2 + WEIGHT * np.exp(logs).sum()

        best = min(minimize(unlikely, [at] * 3, method="Nelder-Mead").fun for at in (-9, -3, 1))
        assert Posterior.of(sums, curvature, noise, kernels).evidence >= sums @ sums / 2 - best - 1e-3


def test_partial_dependence_is_scikit_learns():
    found = partial_dependence(fitted("two"), ROWS[:300], ["time"], grid_resolution=5)["average"]
    assert found[0, -1] - found[0, 0] > 0.2


def test_a_search_chooses_among_sizes_and_the_plan_knows_them():
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 8)), GradientBoostingClassifier((False, True)))
    grid = {"gradientboostingclassifier__max_iter": [1, 2], "gradientboostingclassifier__max_bins": [4, 16]}
    search = PrivateSearchCV(pipe, grid, epsilon=20.0, delta=1e-6).fit(ROWS, LABELS["two"])
    assert search.certificate_.verify()
    assert search.best_score_ > 0.7
    assert search.best_params_.keys() == grid.keys()
