"""Gradient boosting: what users say of columns and losses, and what predictions then are."""

import numpy as np
import pytest
from growing_tables import Table
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from ppdp import Domain, make_pipeline
from ppdp.data.cell_grid import places_among
from ppdp.data.tails import EDGES
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GradientBoostingClassifier, GradientBoostingRegressor
from ppdp.mechanisms.boosting.bins import Bins
from ppdp.mechanisms.boosting.plans import edges_of
from ppdp.mechanisms.boosting.shapes import correlations, joint_shares
from ppdp.mechanisms.boosting.targets import TargetDistribution
from ppdp.mechanisms.learn.prior import Prior
from ppdp.transformers import MinMaxScaler, NormClipper

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (3000, 3))
MEANS = np.exp(1 + np.sin(4 * X[:, 0]) + X[:, 1])
Y = RNG.poisson(MEANS).astype(float)
MODELS = {
    "squared_error": GradientBoostingRegressor((0, 40)),
    "poisson": GradientBoostingRegressor((0, 40), loss="poisson"),
    "gamma": GradientBoostingRegressor((0, 40), loss="gamma"),
    "absolute_error": GradientBoostingRegressor((0, 40), loss="absolute_error"),
    "quantile": GradientBoostingRegressor((0, 40), loss="quantile", quantile=0.9),
    "classes": GradientBoostingClassifier((False, True)),
}


def fitted(name, epsilon=20.0, **settings):
    model = clone(MODELS[name]).set_params(**settings)
    pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), model, epsilon=epsilon, delta=1e-6, dataset=str(RNG.random()))
    return pipe.fit(X, Y > 3 if name == "classes" else Y)


@pytest.mark.parametrize("name", ["gamma", "quantile"])
def test_predictions_are_those_of_the_loss(name):
    """Means, or numbers that a share of the targets lies below."""
    pipe = fitted(name)
    predicted = pipe.predict(X)
    if name == "gamma":
        assert np.corrcoef(np.log(predicted), np.log(MEANS))[0, 1] > 0.9
        assert predicted.mean() == pytest.approx(Y.mean(), rel=0.15)
    else:
        assert (predicted >= Y).mean() == pytest.approx(0.9, abs=0.08)
    assert pipe.certificate_.verify()


def test_few_rows_with_much_noise_are_no_worse_than_their_mean():
    """Of columns of 0 and 1; tables of two of them followed what the baseline lacked."""
    rng = np.random.default_rng(2)
    X = (rng.random((2000, 20)) < 0.2).astype(float)
    y = np.clip(100 + 40 * X[:, 0] - 30 * X[:, 1] + 30 * rng.standard_normal(2000), 0, 400)
    steps = MinMaxScaler(ranges=(0, 1)), GradientBoostingRegressor(y_range=(0, 400))
    models = [make_pipeline(*steps, epsilon=1.0, random_state=seed).fit(X, y) for seed in range(3)]
    assert min(model.score(X, y) for model in models) > 0


def test_lines_of_many_rows_stay_lines_though_noise_says_more():
    """Evidence above 5 of a table of two columns was noise, and predictions were wrong by 0.16 of their spread."""
    table = Table("mild", 64_000)
    steps = MinMaxScaler(ranges=(-1, 1)), GradientBoostingRegressor(y_range=(-1, 1))
    pipe = make_pipeline(*steps, epsilon=1.0, delta=1e-7, random_state=35).fit(table.X, table.target)
    linear = LinearRegression().fit(table.X, table.target).predict(table.new)
    assert np.std(pipe.predict(table.new) - linear) < 0.08 * np.std(linear)


@pytest.mark.parametrize("correlation", [0.9, -0.6, 0.0])
def test_cells_of_columns_that_go_together_have_their_rows(correlation):
    rng = np.random.default_rng(0)
    moments = np.array([[1.0, 2 * correlation], [2 * correlation, 4.0]])
    scores = rng.multivariate_normal([0.0, 0.0], moments, 200_000)
    groups = [np.digitize(own, np.quantile(own, ends)) for own, ends in zip(scores.T, ([0.1, 0.5, 0.9], [0.25, 0.6]))]
    groups[1] = (groups[1] + 1) % 3  # in whatever order they stand
    shares = tuple(np.bincount(of_column) / len(scores) for of_column in groups)
    effects = tuple(np.bincount(of, own) / np.bincount(of) for of, own in zip(groups, scores.T))
    found = joint_shares(shares, effects, float(correlations(moments)[0, 1]))
    together = np.histogram2d(*groups, bins=(range(5), range(4)))[0] / len(scores)
    np.testing.assert_allclose(found, np.maximum(together, np.outer(*shares)), atol=0.005)


def test_a_table_of_columns_that_go_together_does_not_go_too_far():
    rng = np.random.default_rng(33)
    age, power = rng.integers(1, 24, 15_000), rng.normal(95, 32, 15_000).clip(35, 400)
    distance = (age * rng.normal(14_000, 4_000, len(age))).clip(10, 400_000)
    worth = 30_000 * np.exp(-0.11 * age - 1.2e-6 * distance) * (power / 95) ** 0.7
    price, X = worth * rng.choice([0.7, 1.0, 1.4], len(age)), np.column_stack([age, distance, power])
    ranges = MinMaxScaler(ranges=[(0, 35), (0, 400_000), (20, 500)])
    model = GradientBoostingRegressor(loss="poisson", y_range=(0, 60_000))
    pipe = make_pipeline(ranges, model, epsilon=1.0, delta=1e-6, random_state=0).fit(X, price)
    assert pipe.score(X, price) > 0.7


def test_moments_that_are_known_stand_in_place_of_noise():
    """Noise is not believed, and what rows have behind a clip is divided by what is left."""
    known, truth = np.eye(3), np.eye(3) + 0.5 * np.eye(3)[[1, 0, 2]] * (1 - np.eye(3))
    prior = Prior(np.zeros(4), np.ones(4), known)
    seen, noise = prior.believed(np.pad(truth / 2, (0, 1)), 1e-6, 1.0)
    np.testing.assert_allclose(seen[:3, :3], truth, atol=1e-3)
    assert seen[3, 3] == 1
    assert noise == pytest.approx(2e-6, rel=1e-3)
    seen, noise = prior.believed(np.pad(truth, (0, 1)), 1.0, 1.0)
    np.testing.assert_allclose(seen[:3, :3], known)
    assert noise < 0.01


def test_means_of_clipped_targets_are_made_those_of_all():
    """A tail beyond the clip counts where it is more than noise, and targets move by as much as all of them do."""
    counts = np.r_[np.full(8, 110.0), np.zeros(7), 120.0]  # 88 % in the lower half
    for error, noisy in ((0.0, False), (1000.0, True)):
        targets = TargetDistribution.of(counts, np.linspace(-1, 1, 17), error)
        factor, shift = targets.unclipped(-1.0, 0.0)
        assert factor == pytest.approx(1 / 0.88)
        mean = targets.moments(-1.0, 0.0)[0]
        wanted = mean if noisy else targets.moments(-1.0, 1.0)[0]
        assert factor * mean + shift == pytest.approx(wanted)
        assert (wanted > mean + 0.1) != noisy
    assert TargetDistribution.of(np.ones(16), np.linspace(-1, 1, 17)).unclipped(-0.1, 0.1)[0] == pytest.approx(1 / 0.7)


def test_cells_are_where_rows_are():
    """A quarter of them within a thousandth of a range that is far too wide; equal cells where noise hides rows."""
    counts = 1000.0 * (np.arange(51) == 4)
    edges = edges_of(counts, 1.0, 1000.0, 64)
    assert np.diff([-1.0, *edges, 1.0]).min() > 0
    assert ((edges >= EDGES[4]) & (edges <= EDGES[5])).sum() >= 14
    even = edges_of(counts, 2000.0, 1000.0, 64)
    np.testing.assert_allclose(even, np.linspace(-1, 1, 65)[1:-1], atol=1e-4)
    for ends in (edges, even, EDGES[1:-1], edges[:1]):
        values = np.r_[ends, np.nextafter(ends, 2), np.nextafter(ends, -2), -1.0, 1.0, 0.0, RNG.uniform(-1, 1, 300)]
        np.testing.assert_array_equal(places_among(ends, values, 1.0), np.searchsorted(ends, values, side="right"))


def test_bins_are_as_fine_as_noise_allows():
    """Half of a rare class may lie where a hundredth of the rows does: there one bin was all that it had."""
    counts = np.r_[np.full(16, 1000.0), np.full(48, 20.0), 0.0]
    fine, coarse = (Bins.of(counts, noise, np.linspace(-1, 1, 64)) for noise in (1.0, 1000.0))
    assert (fine.starts >= 16).sum() > 3 * (coarse.starts >= 16).sum()


@pytest.mark.parametrize("name", ["poisson", "classes"])
def test_predictions_rise_and_fall_as_they_must(name):
    """Against what rows say, too: a column that must fall where they rise is left flat."""
    pipe = fitted(name, monotonic_cst={0: 1, 1: -1}, interaction_cst="pairwise")
    grid = np.repeat(RNG.uniform(-1, 1, (40, 1, 3)), 50, axis=1)
    for column, side in ((0, 1), (1, -1)):
        moved = grid.copy()
        moved[:, :, column] = np.linspace(-1, 1, 50)
        answer = pipe.predict_proba if name == "classes" else pipe.predict
        steps = side * np.diff(answer(moved.reshape(-1, 3)).reshape(40, 50, -1)[..., -1], axis=1)
        assert steps.min() >= 0
    assert pipe[-1].feature_importances_[0] > 0.05
    assert np.ptp(pipe[-1].models_[0].shapes[1]) < 1e-12


def test_a_high_quantile_of_skewed_targets_is_no_lower():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (7000, 2))
    y = np.exp(X[:, 0] + 0.7 * rng.normal(size=len(X)))
    model = GradientBoostingRegressor((0, 60), loss="quantile", quantile=0.99)
    pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), model, epsilon=1.0, delta=1e-6, random_state=0)
    below = np.mean(y[3000:] <= pipe.fit(X[:3000], y[:3000]).predict(X[3000:]))
    assert below > 0.96  # 0.91 where it stopped at 0.95 of the targets


WRONG = {
    "length": ("poisson", {"monotonic_cst": [1]}),
    "size": ("poisson", {"monotonic_cst": {0: 2}}),
    "column": ("poisson", {"monotonic_cst": {"age": 1}}),
    "word": ("poisson", {"monotonic_cst": "up"}),
    "categories": ("poisson", {"monotonic_cst": {0: 1}, "categorical_features": {0: 2}}),
    "several classes": ("classes", {"monotonic_cst": {0: 1}, "classes": (0, 1, 2)}),
    "loss": ("poisson", {"loss": "huber"}),
    "no quantile": ("quantile", {"quantile": None}),
    "quantile of 1": ("quantile", {"quantile": 1.0}),
    "negative counts": ("poisson", {"y_range": (-1, 2)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_slips_are_refused_before_anything_is_spent(name):
    model, settings = WRONG[name]
    with pytest.raises(InvalidParameter):
        fitted(model, **settings)


@pytest.mark.parametrize(("front", "told"), [(NormClipper(50.0), True), (MinMaxScaler(ranges=(0, 9)), False)])
def test_a_plan_says_which_numbers_beside_categories_are_clipped(front, told):
    model = clone(MODELS["classes"]).set_params(categorical_features={"ward": 2})
    pipe = make_pipeline(front, model, epsilon=1.0, delta=1e-6)
    warned = pipe.plan(Domain(n_rows=2000, feature_names=("age", "ward"))).warned()
    assert any("numbers of age below -1" in warning for warning in warned) == told
