"""What is known before any data: how long a fit takes and how accurate it is, by simulated rows, at no charge."""

import warnings

import numpy as np
import pandas as pd
import pytest
import zoo

import ppdp
from ppdp import Adjacency, Domain, Ledger, Pipeline, make_pipeline
from ppdp.exceptions import DiagnosticWarning, InvalidParameter, MissingBound, NoiseWarning, NoRoute
from ppdp.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    KMeans,
    LinearRegression,
    LogisticRegression,
    SignMechanism,
)
from ppdp.pipeline import expected
from ppdp.pipeline.estimator import state_of
from ppdp.transformers import PCA, CategoryEncoder, MeanImputer, MinMaxScaler, NormClipper, RobustScaler, StandardScaler

RANGES = {"age": (0, 100), "income": (0, 200_000)}
SHAPE = Domain(n_rows=1000, n_features=2)


def pipeline(last, *steps, **parameters):
    return make_pipeline(MinMaxScaler(ranges=RANGES), *steps, last, **parameters)


class TestWhatIsExpected:
    def test_scores_rise_towards_those_without_noise(self):
        found = pipeline(LogisticRegression((0, 1)), StandardScaler()).forecast(SHAPE, epsilons=(0.1, 10.0))
        low, high = (np.mean([score for at, score in found.points if at == epsilon]) for epsilon in (0.1, 10.0))
        assert low < high - 0.03
        assert abs(high - found.without_noise) < 0.02

    def test_errors_of_answers_fall_as_the_noise_does(self):
        found = pipeline(GaussianMechanism()).forecast(SHAPE, epsilons=(0.1, 10.0), repeats=20)
        assert found.without_noise is None
        for epsilon in (0.1, 10.0):
            plan = pipeline(GaussianMechanism(), epsilon=epsilon).plan(SHAPE)
            errors = np.array([error for at, error in found.points if at == epsilon])
            expected = plan.mechanism.noise_scale / plan.mechanism.question.bound
            assert np.sqrt((errors**2).mean()) == pytest.approx(expected, rel=0.4)

    @pytest.mark.parametrize("last", [GaussianMechanism("histogram", bins=3), ExponentialMechanism(candidates=20)])
    def test_other_answers(self, last):
        found = pipeline(last).forecast(SHAPE, epsilons=(0.5, 10.0), repeats=1)
        assert [epsilon for epsilon, _ in found.points] == [0.5, 10.0]
        assert 0 <= found.points[1][1] <= found.points[0][1] < 1

    def test_targets_in_their_range_and_gaps(self):
        pipe = pipeline(LinearRegression(y_range=(0, 7)), MeanImputer())
        found = pipe.forecast(SHAPE.but(max_missing=50), epsilons=[10.0], repeats=1)
        assert found.points[0][1] > 0.3

    def test_labels_of_categories_are_drawn_among_those_that_are_declared(self):
        from sklearn.compose import ColumnTransformer
        from sklearn.linear_model import LogisticRegression as Theirs
        from sklearn.pipeline import make_pipeline as their_pipeline
        from sklearn.preprocessing import OneHotEncoder

        encoder = OneHotEncoder(categories=[["f", "m"]])
        table = ColumnTransformer([("n", "passthrough", ["age"]), ("c", encoder, ["sex"])])
        pipe = ppdp.Pipeline.from_sklearn(
            their_pipeline(table, Theirs()), ranges={"age": (0, 100)}, classes=("no", "yes")
        )
        drawn = pipe.steps[0][1].simulated(
            50, Domain(n_features=2, feature_names=("age", "sex")), np.random.default_rng(0)
        )
        assert set(drawn[:, 1]) == {"f", "m"}
        assert pipe.forecast(Domain(n_rows=500, feature_names=("age", "sex")), epsilons=[5.0], repeats=1).points

    @pytest.mark.parametrize("last", [LogisticRegression((0, 1)), LinearRegression(y_range=(0, 1))])
    def test_numbers_are_drawn_within_the_ranges_of_a_declaration(self, last):
        declared = ppdp.declare(pd.DataFrame(columns=[*RANGES], dtype=float))
        declared.update(RANGES)
        shape, tail = SHAPE.but(feature_names=tuple(RANGES)), (StandardScaler(), last)
        ours = make_pipeline(*(step for _, step in declared.steps()), *tail)
        one, other = (
            pipe.forecast(shape, epsilons=[10.0], repeats=1) for pipe in (ours, pipeline(last, StandardScaler()))
        )
        assert one.without_noise == pytest.approx(other.without_noise, abs=0.02)
        assert one.points[0][1] == pytest.approx(other.points[0][1], abs=0.05)

    def test_categories_that_are_numbers_are_drawn_among_those_that_are_declared(self):
        table = CategoryEncoder([1, 5]).simulated(200, SHAPE, np.random.default_rng(0))
        assert set(table.ravel().tolist()) == {1, 5}

    def test_nothing_is_said_of_rows_that_nobody_has(self):
        def outside(rng, n):
            return rng.uniform(300, 400, (n, 2)), np.arange(n) % 2

        pipe = make_pipeline(MinMaxScaler(ranges=(0, 100)), LogisticRegression((0, 1)))
        with warnings.catch_warnings():
            warnings.simplefilter("error", DiagnosticWarning)
            assert pipe.forecast(SHAPE, epsilons=[5.0], repeats=1, simulate=outside).points

    def test_a_model_whose_randomness_must_be_nobodys(self):
        pipe = make_pipeline(NormClipper(), LogisticRegression((0, 1), solver="m2"), adjacency=Adjacency.add_remove())
        assert pipe.forecast(Domain(n_rows=300, n_features=16), epsilons=[2.0], repeats=1).points

    def test_rows_of_your_own(self):
        def simulate(rng, n):
            X = pd.DataFrame({name: rng.uniform(0, high, n) for name, (_, high) in RANGES.items()})
            return X, rng.permutation(np.arange(n) % 2)

        found = pipeline(LogisticRegression((0, 1))).forecast(SHAPE, epsilons=[5.0], repeats=2, simulate=simulate)
        assert all(0.4 < score < 0.6 for _, score in found.points)

    def test_an_epsilon_for_which_noise_is_too_coarse_is_that_of_the_plan(self):
        pipe = pipeline(LogisticRegression((0, 1)), epsilon=499)
        with pytest.warns(NoiseWarning, match="epsilon = 499 at delta = 1e-06: the plan keeps epsilon = 2"):
            found = pipe.forecast(SHAPE, epsilons=(1.0, 400.0, 499.0), repeats=1)
        assert [epsilon for epsilon, _ in found.points] == [1.0, pipe.plan(SHAPE).epsilon]

    def test_the_same_seed_gives_the_same(self):
        one, other = (pipeline(GaussianMechanism()).forecast(SHAPE, epsilons=[1.0], repeats=2) for _ in range(2))
        assert one.points == other.points
        assert one.points[0] != one.points[1]


class TestNobodyPays:
    def test_neither_a_ledger_nor_the_count_of_fits(self):
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        pipe = pipeline(GaussianMechanism(), ledger=ledger, dataset="forecast")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pipe.forecast(SHAPE, epsilons=(1.0, 10.0))
        assert len(ledger.entries()) == 0
        assert not hasattr(pipe, "certificate_")

    def test_the_pipeline_stays_as_it_is(self):
        pipe = pipeline(GaussianMechanism(), epsilon=0.7)
        pipe.forecast(SHAPE, epsilons=[5.0], repeats=1)
        assert (pipe.epsilon, pipe.domain, state_of(pipe).promised) == (0.7, None, None)


class TestWhereThereIsNone:
    def test_epsilons_without_a_route_are_counted(self):
        pipe = make_pipeline(NormClipper(), PCA(2), GaussianMechanism())
        found = pipe.forecast(Domain(n_rows=60, n_features=10), epsilons=(0.1, 10.0), repeats=2)
        assert found.refused == ((0.1, 2), (10.0, 0))
        assert {epsilon for epsilon, _ in found.points} == {10.0}

    def test_no_route_at_all(self):
        pipe = make_pipeline(NormClipper(), PCA(2), GaussianMechanism())
        with pytest.raises(NoRoute, match="no epsilon of the forecast"):
            pipe.forecast(Domain(n_rows=60, n_features=10), epsilons=[0.1])

    def test_what_is_not_declared_is_named(self):
        with pytest.raises(MissingBound):
            pipeline(GaussianMechanism()).forecast(epsilons=[1.0])

    @pytest.mark.parametrize(
        "last", [KMeans(3), SignMechanism(), GaussianMechanism("rows"), StandardScaler(fit_mode="noisy")]
    )
    def test_what_nobody_can_score_is_refused(self, last):
        with pytest.raises(InvalidParameter):
            pipeline(last).forecast(SHAPE, epsilons=[1.0])

    @pytest.mark.parametrize("wrong", [{"epsilons": (0.0,)}, {"epsilons": ("much",)}, {"epsilons": ()}, {"repeats": 0}])
    def test_bad_parameters(self, wrong):
        with pytest.raises(InvalidParameter):
            pipeline(GaussianMechanism()).forecast(SHAPE, **wrong)

    @pytest.mark.parametrize(
        "wrong", ["rows", lambda rng, n: None, lambda rng, n: (np.zeros((n - 1, 2)), None), lambda rng, n: (None, None)]
    )
    def test_a_simulator_that_gives_no_rows(self, wrong):
        with pytest.raises(InvalidParameter, match="simulate must"):
            pipeline(GaussianMechanism()).forecast(SHAPE, epsilons=[1.0], simulate=wrong)


class TestShown:
    def test_a_table_and_a_picture(self):
        found = pipeline(LogisticRegression((0, 1))).forecast(SHAPE, epsilons=(0.3, 3.0), repeats=2)
        assert "FORECAST on simulated rows" in repr(found)
        assert "no noise" in repr(found)
        page = found._repr_html_()
        assert "<table>" in page
        assert "data:image/png;base64," in page
        ax = found.plot()
        assert ax.get_ylabel() == "score of the model, simulated rows"
        assert "real rows may score otherwise" in ax.get_title(loc="left")
        assert [line.get_label() for line in ax.lines][-1] == "the same without noise"

    def test_stages_that_declare_nothing_get_rows_inside_the_norm(self):
        pipe = make_pipeline(RobustScaler(min_width=0.01), GaussianMechanism(), gate=None)
        assert pipe.forecast(Domain(n_rows=500, n_features=3, row_norm=2.0), epsilons=[5.0], repeats=1).points


# ---------------- how long a fit will take


NAMES = (
    "unconditional",
    "private categories",
    "groups of columns",
    "persons",
    "classes read",
    "epochs",
    "medians",
    "rows",
)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(expected, "ENTRIES", 3000)
    monkeypatch.setattr(expected, "LEAST", 200)
    monkeypatch.setattr(expected, "RUNS", 1)


@pytest.mark.repeated("name", keep=4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("few")
def test_of_every_kind_of_step(name):
    steps, given = zoo.ZOO[name]
    pipe = Pipeline(steps, **{"epsilon": 20.0, "delta": 1e-6, **given})
    found = pipe.fit_time(Domain(n_rows=5000, feature_names=("a", "b", "c")))
    assert min(found.in_memory) > 0
    assert (found.in_blocks is None) == (name in ("medians", "rows", "persons"))
    assert found.per_number > 0
    assert "ns for each row, column and pass" in repr(found)


@pytest.mark.usefixtures("few")
def test_of_more_rows_than_there_is_memory_nothing_is_charged(tmp_path):
    steps = MinMaxScaler(ranges=(-4, 4)), MeanImputer(), LogisticRegression(classes=(0, 1))
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    pipe = make_pipeline(*steps, delta=1e-11, ledger=ledger, dataset="d")
    domain = Domain(n_rows=10**11, n_features=20)
    found = pipe.fit_time(domain)
    assert found.in_memory is None
    assert found.n_passes == pipe.plan(domain).n_passes
    assert min(found.in_blocks) > 0
    assert ledger.entries() == ()
    assert not hasattr(pipe, "release_")


@pytest.mark.usefixtures("few")
def test_rows_of_categories_alone_may_have_gaps():
    pipe = make_pipeline(CategoryEncoder(["a", "b"], strategy="most_frequent"), GaussianMechanism())
    assert pipe.fit_time(Domain(n_rows=1000, n_features=2)).in_blocks is not None
