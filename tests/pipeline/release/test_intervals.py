"""Intervals cover as often as they say, those of noise and of a population; where none is known, there is none."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from effort import rounds
from scipy.stats import dlaplace, trim_mean
from sklearn import linear_model
from sklearn.base import clone

from ppdp import Domain, load, make_pipeline
from ppdp import mechanisms as M
from ppdp.data.rows import Rows
from ppdp.data.unit_conversion import Columns, half_width, quotient_ends
from ppdp.exceptions import ExportError, InvalidParameter
from ppdp.mechanisms.learn.errors import UNKNOWN, Errors, errors_of_coefficients
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import (
    Deduplicator,
    MeanImputer,
    MedianImputer,
    MinMaxScaler,
    RegressionImputer,
    StandardScaler,
    TrimmedMeanImputer,
)

N, D = 500, 4
NORM = 2.0


def share_within(hits, alpha=0.05, least=None):
    """Hits are as frequent as they should be, up to four standard errors; or at least as frequent as ``least``."""
    hits = np.concatenate([np.ravel(one) for one in hits])
    error = 4 * math.sqrt(alpha * (1 - alpha) / len(hits))
    assert hits.mean() > (1 - alpha if least is None else least) - error, hits.mean()
    assert least is not None or hits.mean() < 1 - alpha + error, hits.mean()


class TestNoise:
    @pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001])
    @pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 7.7, 4000.0])
    def test_of_whole_numbers_are_the_shortest(self, scale, alpha):
        law = dlaplace(1 / scale)
        half = half_width("whole", law.std(), alpha)
        assert half == int(half)
        assert 2 * law.sf(half) <= alpha * (1 + 1e-9)
        assert half == 0 or 2 * law.sf(half - 1) > alpha

    def test_no_sum_of_two_laplace_numbers_is_beyond_more_often(self):
        """The factor of a quotient is the longer one of both laws, whatever the sizes of the two noises."""
        factor = max(half_width("laplace", 1.0, 0.05), half_width("gaussian", 1.0, 0.05))
        for angle in np.linspace(0, math.pi / 2, 91):
            a, b = np.array([math.cos(angle), math.sin(angle)]) / math.sqrt(2)
            if abs(a - b) < 1e-9 or min(a, b) < 1e-9:
                continue
            beyond = (a**2 * math.exp(-factor / a) - b**2 * math.exp(-factor / b)) / (a**2 - b**2)
            assert beyond <= 0.05 * (1 + 1e-9)

    def test_a_quotient_by_what_may_be_nothing_is_anywhere(self):
        low, high = quotient_ends(np.array([0.1, 0.2]), 0.05, 0.1, 0.1, "gaussian", 0.05)
        assert (low == -math.inf).all()
        assert (high == math.inf).all()


CENTRES = {"inside": 0.3, "at the edge": NORM / math.sqrt(D)}
QUERIES = [
    *((M.GaussianMechanism, query) for query in ("mean", "sum", "count", "histogram", "covariance")),
    *((M.LaplaceMechanism, query) for query in ("mean", "sum", "count", "histogram")),
]


def asked(kind, query, noise, *, absent=0):
    """A query of public rows, noisier than they are long, and its domain."""
    mechanism = kind(query, noise, bins=[-2, 0, 0.5, 2])
    domain = Domain(n_rows=N, n_features=D, row_norm=NORM, min_present=0 if absent else N)
    return mechanism, domain, mechanism.query_spec(domain)


def intervals(mechanism, rows, domain, question, seed, *, alpha=0.05, noise=None):
    """Lower and upper ends of everything that is told of one release."""
    source = Noise(np.random.default_rng(seed))
    released = mechanism.release(rows, question, source, mechanism.noise_scale if noise is None else noise)
    mechanism.read(released, domain, question)
    told = mechanism.answers(Columns.raw([f"x{i}" for i in range(D)]), domain, question)
    each = [one.interval(alpha, raw=True) for one in told]
    return tuple(np.concatenate([one[name] for one in each]) for name in ("lower", "upper", "value"))


def exact(mechanism, rows, domain, question):
    """What is told of the exact answer."""
    mechanism.read({"answer": mechanism.answer(rows, question)}, domain, question)
    told = mechanism.answers(Columns.raw([f"x{i}" for i in range(D)]), domain, question)
    return np.concatenate([one.value for one in told])


@pytest.mark.parametrize("absent", [0, 200])
@pytest.mark.parametrize("centre", CENTRES.values(), ids=CENTRES)
@pytest.mark.parametrize(("kind", "query"), QUERIES)
@pytest.mark.repeated("centre", "absent")
def test_queries_are_covered(kind, query, centre, absent):
    """Also where noise has moved answers to where rows could have them, and where it is larger than they are."""
    rng = np.random.default_rng(0)
    X = np.clip(centre + 0.2 * rng.standard_normal((N, D)), -1, 1)
    X *= np.minimum(1, NORM / np.linalg.norm(X, axis=1))[:, None]
    rows = Rows.of(X)
    if absent:
        rows = Rows(np.where(np.arange(N)[:, None] < absent, 0.0, X), None, (np.arange(N) >= absent).astype(float))
    size = {"mean": 0.1, "covariance": 0.1, "sum": 50.0, "count": 20.0, "histogram": 20.0}[query]
    mechanism, domain, question = asked(kind, query, size, absent=absent)
    truth, hits = exact(mechanism, rows, domain, question), []
    for seed in range(rounds(250)):
        low, high, _ = intervals(mechanism, rows, domain, question, seed)
        hits.append((low <= truth + 1e-9) & (truth - 1e-9 <= high))
    # Laws are exact where nothing is a quotient, a product or a whole number, and nothing is clipped.
    plain = query in ("mean", "sum") and (not absent or query == "sum")
    share_within(hits, least=None if plain else 0.945)


def test_around_what_was_moved_they_would_not_cover():
    """So the case at the edge is one: the same widths around values in the ball miss more often."""
    rows = Rows.of(np.full((N, D), NORM / math.sqrt(D)))
    mechanism, domain, question = asked(M.GaussianMechanism, "mean", 1.0)
    hits, naive = [], []
    for seed in range(400):
        low, high, value = intervals(mechanism, rows, domain, question, seed)
        hits.append((low <= 1) & (high >= 1))
        naive.append(np.abs(value - 1) <= half_width("gaussian", 0.05, 0.05))
    share_within(hits)
    assert np.mean(naive) < 0.9


def test_stages_are_covered():
    """Means and standard deviations of a scaler, whose noise is larger than the smallest of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, [0.02, 0.1, 0.4], (1000, 3)).clip(-1, 1)
    pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), StandardScaler(fit_mode="noisy"), epsilon=0.5, delta=1e-5)
    hits = []
    for seed in range(rounds(60)):
        found = pipe.set_params(random_state=seed).fit(X).release_.conf_int()
        truth = np.concatenate([X.mean(axis=0), X.std(axis=0)])
        hits.append(((found["lower"] <= truth) & (truth <= found["upper"])).to_numpy())
    share_within(hits, least=0.94)


class TestBehindImputers:
    """What noise does to what fills missing values is in the error, by the share of them that is released."""

    STEPS = (
        (MeanImputer(), M.GaussianMechanism("mean")),
        (MeanImputer(), M.GaussianMechanism("sum")),
        (MeanImputer(), M.LaplaceMechanism("mean")),
        (MeanImputer(), StandardScaler(fit_mode="noisy"), M.GaussianMechanism("mean")),
        (TrimmedMeanImputer(), M.GaussianMechanism("mean")),
        (MeanImputer(), M.Report(["mean"])),
    )

    @staticmethod
    def fits(*steps, n=20_000, count=40, **given):
        X = np.random.default_rng(0).beta(2, 5, (n, 1)) * 50
        X[: n * 3 // 10] = np.nan
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 50)), *map(clone, steps), epsilon=1.0, delta=1e-5, **given)
        for seed in range(rounds(count)):
            found = pipe.set_params(random_state=seed).fit(X).release_.conf_int()
            yield X, found[found["statistic"].isin(["mean", "sum"])].iloc[-1]

    @pytest.mark.parametrize("steps", STEPS)
    def test_means_and_sums_of_filled_values_are_covered(self, steps):
        """Without noise a filled mean is that of the observed values."""
        hits, notes = [], []
        for X, found in self.fits(*steps):
            truth = np.nanmean(X) * (len(X) if found["statistic"] == "sum" else 1)
            if isinstance(steps[0], TrimmedMeanImputer):
                truth = 0.7 * truth + 0.3 * trim_mean(X[~np.isnan(X)], 1000 / 14_000)
            hits.append(found["lower"] <= truth <= found["upper"])
            notes.append(found["note"])
        share_within(hits, least=0.94)
        assert all(re.search("missing values filled, error as if (29|30|31|100) % were missing", one) for one in notes)

    def test_where_no_share_is_released_all_values_may_be_missing(self):
        """So intervals are longer than with a public limit, or with the share."""
        free, limited, told = (
            next(self.fits(MeanImputer(fit_mode="noisy"), M.GaussianMechanism(), **given))[1]["standard_error"]
            for given in (
                {"diagnostics": None},
                {"diagnostics": None, "domain": Domain(n_rows=20_000, max_missing=10_000)},
                {},
            )
        )
        assert free > 1.5 * limited
        assert limited > 1.2 * told

    @pytest.mark.parametrize("imputer", [MedianImputer(fit_mode="noisy"), RegressionImputer(fit_mode="noisy")])
    def test_where_that_noise_is_unknown_there_is_none(self, imputer):
        _, found = next(self.fits(imputer, M.GaussianMechanism("mean")))
        assert "error of the last step alone" in found["note"]
        assert np.isnan([found["lower"], found["upper"], found["population_upper"]]).all()

    def test_fewer_observed_values_are_a_smaller_sample(self):
        """By the released share, so as without the rows that lack one."""
        hits = []
        pipe = make_pipeline(MinMaxScaler(ranges=(-2, 2)), MeanImputer(), M.GaussianMechanism("covariance"), epsilon=5)
        for seed in range(rounds(60)):
            X = np.random.default_rng([seed, 1]).uniform(-1, 1, (5000, 1))
            X[:3000] = np.nan
            found = pipe.set_params(random_state=seed).fit(X).release_.conf_int()
            found = found[(found["statistic"] == "mean")].iloc[-1]
            hits.append(found["population_lower"] <= 0 <= found["population_upper"])
        share_within(hits, least=0.94)


class TestPopulation:
    def test_means_and_counts_are_covered(self):
        """Over draws of rows as well as of noise."""
        edges, hits, narrow = [-2.0, -0.5, 0.0, 2.0], [], []
        mean = make_pipeline(MinMaxScaler(ranges=(-2, 2)), M.GaussianMechanism("covariance"), epsilon=1, delta=1e-5)
        rows = make_pipeline(MinMaxScaler(ranges=(-2, 2)), M.LaplaceMechanism("histogram", bins=edges), epsilon=2)
        for seed in range(rounds(60)):
            X = np.random.default_rng([seed, 1]).uniform(-1, 1, (300, 2))
            for pipe, name, truth in ((mean, "mean", 0.0), (rows, "rows", [75, 75, 150] * 2)):
                found = pipe.set_params(random_state=seed).fit(X).release_.conf_int()
                found = found[found["statistic"] == name]
                hits.append(((found["population_lower"] <= truth) & (truth <= found["population_upper"])).to_numpy())
                narrow.append(((found["lower"] <= truth) & (truth <= found["upper"])).to_numpy())
        share_within(hits, least=0.945)
        assert np.mean(np.concatenate(narrow)) < 0.9  # those of the noise alone do not

    def test_rows_of_one_person_are_no_sample(self):
        domain = Domain(rows_per_unit=2)
        pipe = make_pipeline(
            MinMaxScaler(ranges=(-1, 1)), M.GaussianMechanism("covariance"), domain=domain, epsilon=1, delta=1e-5
        )
        found = pipe.fit(np.random.default_rng(0).uniform(-1, 1, (300, 2))).release_.conf_int()
        assert found["lower"].notna().all()
        assert found["sampling_error"].isna().all()


def table(n, d, seed, kind="logistic"):
    rng = np.random.default_rng([seed, 5])
    X = rng.uniform(-1, 1, (n, d))
    coef = np.linspace(-1, 1.5, d)
    score = X @ coef - 0.3
    y = {
        "logistic": lambda: (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int),
        "squared": lambda: np.clip(0.2 * score + rng.normal(0, 0.2, n), -1, 1),
        "Poisson": lambda: np.minimum(rng.poisson(np.exp(0.4 * score)), 12),
    }[kind]()
    return X, y, {"logistic": 1.0, "squared": 0.2, "Poisson": 0.4}[kind] * coef


MODELS = {
    "logistic": (M.LogisticRegression((0, 1)), linear_model.LogisticRegression(tol=1e-9)),
    "squared": (M.LinearRegression(y_range=(-1, 1)), linear_model.LinearRegression()),
    "Poisson": (M.PoissonRegressor(y_range=(0, 12)), linear_model.PoissonRegressor(alpha=0, tol=1e-9)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_coefficients_are_covered(kind):
    """Those of scikit-learn on the same rows, and those that the rows were drawn with; in raw units."""
    model, twin = MODELS[kind]
    noise, population, ratios = [], [], []
    pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), model, epsilon=3, delta=1e-6)
    for seed in range(rounds(25)):
        X, y, coef = table(20_000, 4, seed, kind)
        found = pipe.set_params(random_state=seed).fit(X, y).release_.conf_int()
        own = twin.fit(X, y)
        truth = np.append(own.coef_, own.intercept_)
        assert found["lower"].notna().all()
        noise.append(((found["lower"] <= truth) & (truth <= found["upper"])).to_numpy())
        own = found.iloc[:4]
        population.append(((own["population_lower"] <= coef) & (coef <= own["population_upper"])).to_numpy())
        ratios.append((found["value"] - truth) / found["standard_error"])
    share_within(noise, least=0.95)
    share_within(population, least=0.94)
    assert 0.3 < np.sqrt(np.mean(np.square(ratios))) < 1


class TestNoneWhereNoneIsKnown:
    def told(self, model, n=3000, d=4, y=None, domain=None, **parameters):
        X, labels, _ = table(n, d, 0)
        pipe = make_pipeline(
            MinMaxScaler(ranges=(-1, 1)), model, epsilon=1, delta=1e-6, random_state=0, domain=domain, **parameters
        )
        return pipe.fit(X, labels if y is None else y(labels)).release_.conf_int()

    def test_where_noise_hides_the_curvature(self):
        found = self.told(M.LogisticRegression((0, 1), solver="newton"), d=12)
        assert found["upper"].isna().all()
        assert found["note"].str.contains("no standard error").all()

    @pytest.mark.parametrize(
        "model",
        [
            M.LogisticRegression((0, 1), solver="dpgd"),
            M.LinearSVC((0, 1)),
            M.LogisticRegression((0, 1, 2)),
            M.Ridge((-1, 1), solver="dpgd"),
        ],
    )
    def test_of_descent_and_of_several_scores(self, model):
        assert self.told(model, n=20_000)["upper"].isna().all()

    @pytest.mark.parametrize("penalised", [False, True])
    def test_of_a_column_that_is_always_the_same(self, penalised):
        """A direction without variance is not known, unless a penalty bends the loss there."""
        X, y, _ = table(240_000, 3, 0)
        X[:, 1] = 0.25
        model = M.LogisticRegression((0, 1)) if penalised else M.LinearRegression(y_range=(0, 1))
        pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), model, epsilon=3, delta=1e-6, random_state=0)
        found = pipe.fit(X, y).release_.conf_int().set_index("column")
        assert not penalised or found.loc[["x0", "x2"], "population_upper"].notna().all()
        assert found.loc[["x1", ""], "population_upper"].isna().all()
        assert found.loc[["x1", ""], "upper"].notna().all() == penalised
        assert not penalised or found.loc["x1", "lower"] < 0 < found.loc["x1", "upper"]

    def test_of_drawing_rows_with_weights(self):
        found = self.told(M.LogisticRegression((0, 1), class_weight={0: 1.0, 1: 0.5}), n=40_000)
        assert found["upper"].notna().all()
        assert found["population_upper"].isna().all()

    def test_of_what_was_chosen(self):
        X, _, _ = table(3000, 2, 0)
        pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), M.ExponentialMechanism(), epsilon=1, delta=1e-6)
        found = pipe.fit(X).release_.conf_int()
        assert found["upper"].isna().all()
        assert found["note"].str.contains("95 % of runs").all()

    def test_of_coefficients_that_were_moved_into_their_ball(self):
        models = [M.Ridge((-1, 1), solver="output", max_coef_norm=norm) for norm in (5.0, 1e-3)]
        free, moved = (self.told(model, y=lambda labels: labels * 1.0 - 0.5) for model in models)
        assert free["upper"].notna().all()
        assert moved["upper"].isna().all()

    @pytest.mark.parametrize("curvature", [None, (np.eye(3), np.zeros(3)), (np.full((3, 3), np.nan), np.ones(3))])
    def test_of_what_leads_to_no_numbers(self, curvature):
        """The table that is released is finite, and tells no error."""
        whitening = SimpleNamespace(moments=np.eye(3), coefficients=lambda theta: theta)
        state = SimpleNamespace(
            theta=np.full((1, 3), np.nan), whitening=whitening, last_gradient=(np.zeros((1, 3)), 1.0)
        )
        state.ridge, state.score_norm = np.zeros((3, 3)), np.linalg.norm
        found = errors_of_coefficients(state, curvature, 1.0, 1.0)
        assert np.isfinite(found).all()
        assert (found[-1] == UNKNOWN).all()
        assert np.isnan(Errors.of(found, 1.0, sampled=True)(np.eye(3))).all()


class TestTheTable:
    def test_is_the_same_from_a_file(self, tmp_path):
        X, y, _ = table(20_000, 3, 0)
        pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), M.LogisticRegression((0, 1)), epsilon=1, delta=1e-6)
        own = pipe.fit(X, y).release_.conf_int(0.1)
        pipe.export(tmp_path / "model.zip")
        pd.testing.assert_frame_equal(load(tmp_path / "model.zip").release_.conf_int(0.1), own)

    def test_has_raw_units_or_those_of_the_release(self):
        X, _, _ = table(2000, 2, 0)
        pipe = make_pipeline(MinMaxScaler(ranges=(-3, 5)), M.GaussianMechanism(), epsilon=1, delta=1e-6).fit(X)
        raw, own = pipe.release_.conf_int(), pipe.release_.conf_int(raw=False)
        for name in ("value", "lower", "upper"):
            assert np.allclose(raw[name], 1 + 4 * own[name])
        assert np.allclose(raw["upper"] - raw["lower"], 2 * half_width("gaussian", raw["standard_error"], 0.05))

    def test_narrows_as_alpha_grows(self):
        X, y, _ = table(20_000, 2, 0)
        pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), M.LogisticRegression((0, 1)), epsilon=1, delta=1e-6).fit(
            X, y
        )
        wide, narrow = (pipe.release_.conf_int(alpha) for alpha in (0.01, 0.5))
        assert (wide["lower"] < narrow["lower"]).all()
        assert (wide["population_upper"] > narrow["population_upper"]).all()

    @pytest.mark.parametrize("alpha", [0, 1, -0.1, "5 %", math.nan])
    def test_wants_a_probability(self, alpha):
        pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), M.GaussianMechanism(), epsilon=1, delta=1e-6)
        with pytest.raises(InvalidParameter, match="alpha"):
            pipe.fit(table(300, 2, 0)[0]).release_.conf_int(alpha)


class TestBeforeAFit:
    @pytest.mark.parametrize("middle", [[], [Deduplicator()]])
    @pytest.mark.parametrize(
        "query",
        [
            M.GaussianMechanism(),
            M.GaussianMechanism("sum"),
            M.GaussianMechanism("histogram", bins=3),
            M.LaplaceMechanism(),
            M.LaplaceMechanism("count"),
        ],
        ids=lambda query: f"{type(query).__name__} {query.query}",
    )
    def test_it_is_what_the_fit_will_have(self, query, middle):
        X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
        pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), *middle, query, epsilon=1, delta=1e-6)
        expected = pipe.expected_errors(Domain(n_rows=2000, n_features=3))
        found = pipe.fit(X).release_.to_pandas()
        assert list(expected["statistic"]) == list(found["statistic"])
        assert np.allclose(expected["standard_error"], found["standard_error"], rtol=1e-3)
        assert np.allclose(expected["raw_standard_error"], found["raw_standard_error"], rtol=1e-3, equal_nan=True)
        own = pipe.release_.conf_int(raw=False)
        if query.query in ("mean", "sum"):
            width = (own["upper"] - own["lower"]) / 2
            assert np.allclose(expected["half_width"][:3], width[:3], rtol=1e-3)

    def test_stages_are_in_it_and_models_are_rehearsed(self):
        steps = MinMaxScaler(ranges=(-1, 1)), StandardScaler(fit_mode="noisy"), M.LogisticRegression((0, 1))
        pipe = make_pipeline(*steps, epsilon=1, delta=1e-6, domain=Domain(n_rows=2000, n_features=3))
        found, plan = pipe.expected_errors(), pipe.plan()
        means = found[found["statistic"] == "mean"]
        assert np.allclose(means["raw_standard_error"], plan.releases[0].noise_scale)
        assert found["half_width"].isna().tolist() == [False] * 3 + [True] * 4
        assert "forecast" in found["note"].iloc[-1]


def test_released_rows_have_none():
    from ppdp.mechanisms import GaussianMechanism as Release
    from ppdp.transformers import NormClipper, RandomProjection

    steps = NormClipper(1.0), RandomProjection(2), Release("rows")
    pipe = make_pipeline(*steps, epsilon=5, delta=1e-4).fit(np.random.default_rng(0).normal(0, 0.3, (50, 3)))
    with pytest.raises(ExportError, match="no intervals"):
        pipe.release_.conf_int()
