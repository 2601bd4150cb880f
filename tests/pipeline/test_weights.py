"""Weights of rows and classes: what scikit-learn learns with them is learned, and what is no weight is refused."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn
from sklearn import linear_model as theirs
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.utils.class_weight import compute_class_weight

import ppdp
from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivateSearchCV, make_pipeline
from ppdp.bounds.release import CLASS, WEIGHT
from ppdp.data.frames import column
from ppdp.data.weights import balanced_factors, read_weights
from ppdp.exceptions import (
    DiagnosticWarning,
    InvalidInput,
    InvalidParameter,
    InvalidValue,
    MissingBound,
    PpdpError,
    UnknownParameter,
    UnsupportedOrder,
)
from ppdp.mechanisms import (
    GaussianMechanism,
    GradientBoostingClassifier,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from ppdp.pipeline.fit import prepare_rows
from ppdp.transformers import Deduplicator, MinMaxScaler, StandardScaler

N, FEW, CAP = 20_000, 5000, 12.0
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 3))
SCORES = X @ [2.0, -1.0, 0.5] - 1.2 + 3 * (X[:, 0] > 0) * X[:, 1] ** 2
Y = (SCORES + RNG.logistic(size=N) > 0).astype(int)
SEVERAL = Y + (X[:, 2] + 0.5 * RNG.logistic(size=N) > 0.6)
TARGETS = np.clip(SCORES / 4, -1, 1)
COUNTS = RNG.poisson(np.exp(np.clip(SCORES, -2, 1)))
WEIGHTS = RNG.uniform(0, 2, N) * np.where(X[:, 0] > 0, 6.0, 1.0)

pytestmark = [
    pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning"),
    pytest.mark.filterwarnings("ignore::ppdp.exceptions.NoiseWarning"),
]


def pipeline(*last, max_weight=CAP, domain=None, **own):
    domain = domain or Domain(max_weight=max_weight)
    last = last or (LogisticRegression((0, 1), max_iter=6),)
    return make_pipeline(MinMaxScaler(ranges=(-1, 1)), *last, **{"epsilon": 5.0, "delta": 1e-6, **own}, domain=domain)


def learned(model, y, weights):
    """Coefficients of the model alone, almost without noise."""
    domain = Domain(n_rows=FEW, n_features=3, row_norm=2.0, max_weight=CAP)
    pipe = make_pipeline(model, epsilon=20.0, delta=1e-5, domain=domain)
    plan, rows = prepare_rows(pipe, X[:FEW], y[:FEW])
    question, stage = plan.mechanism.question, plan.mechanism.stage
    rows = type(rows)(rows.X, rows.y, rows.weight, factor=weights[:FEW] / CAP)
    released = stage.release(rows.weighted(np.array(question.factors)), question, ppdp.mechanisms.base.Noise(0), 1e-6)
    stage.read(released, plan.end[0], question)
    return np.append(stage.coef_.ravel(), stage.intercept_)


def reference(model, y, weights):
    model.fit(X[:FEW], y[:FEW], sample_weight=weights[:FEW])
    return np.append(model.coef_.ravel(), model.intercept_)


MODELS = {
    "logistic": (
        lambda **own: LogisticRegression(
            (0, 1), max_coef_norm=20.0, max_grad_norm=3.0, max_iter=300, alpha=100.0, **own
        ),
        lambda **own: theirs.LogisticRegression(C=1 / 100, **own),
        Y,
    ),
    "several classes": (
        lambda **own: LogisticRegression(
            (0, 1, 2), max_coef_norm=20.0, max_grad_norm=3.0, max_iter=300, alpha=100.0, **own
        ),
        lambda **own: theirs.LogisticRegression(C=1 / 100, **own),
        SEVERAL,
    ),
    "least squares": (
        lambda: LinearRegression((-1, 1), max_grad_norm=9.0, max_iter=200, max_coef_norm=9.0),
        theirs.LinearRegression,
        TARGETS,
    ),
    "ridge": (
        lambda: Ridge((-1, 1), alpha=750.0, max_grad_norm=9.0, max_iter=200, max_coef_norm=9.0),
        lambda: theirs.Ridge(750.0),
        TARGETS,
    ),
    "counts": (
        lambda: PoissonRegressor((0, 16), max_grad_norm=99.0, max_iter=300),
        lambda: theirs.PoissonRegressor(alpha=0.0),
        COUNTS,
    ),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("by", ["row", "class", "row and class"])
def test_almost_without_noise_a_model_is_that_of_scikit_learn(kind, by):
    ours, other, y = MODELS[kind]
    weights, own = (WEIGHTS if "row" in by else None), {}
    if "class" in by:
        if kind not in ("logistic", "several classes"):
            pytest.skip("it learns no classes")
        own = {"class_weight": {0: 1.0, 1: 4.0}}
    if weights is None:
        weights = np.full(N, CAP / 2)  # which scikit-learn's penalty is beside, too
    found = learned(ours(**own), y, weights)
    wanted, unweighted = reference(other(**own), y, weights), reference(other(), y, np.full(N, CAP / 2))
    if kind == "several classes":  # intercepts are free up to a constant
        found, wanted, unweighted = (np.append(v[:9], v[9:] - v[9:].mean()) for v in (found, wanted, unweighted))
    far = np.linalg.norm(wanted - unweighted)
    assert far > 0.05
    assert np.linalg.norm(found - wanted) < 0.15 * far


class TestOneBits:
    """Rows in blocks, in slots or by name give the bits that arrays give."""

    FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y, w=WEIGHTS, who=np.arange(N) // 2)

    @pytest.fixture
    def folder(self, tmp_path):
        pq.write_table(pa.Table.from_pandas(self.FRAME.drop(columns="who")), tmp_path / "0.parquet", row_group_size=999)
        return tmp_path

    def released(self, pipe, *given, **named):
        return {name: array.tobytes() for name, array in pipe.fit(*given, **named).release_.arrays.items()}

    @pytest.mark.parametrize("solver", ["dpgd", "poisson", "fixed-size", "epochs", "output", "m2"])
    @pytest.mark.parametrize("weights", [None, {1: 3.0}, "balanced"], ids=str)
    @pytest.mark.repeated("weights", keep=2)
    def test_blocks(self, solver, weights, folder):
        if solver in ("output", "m2") and weights == "balanced":
            pytest.skip("it has no seed, or takes no released weights")
        more = {"rank": 2} if solver == "m2" else {}
        model = LogisticRegression((0, 1), solver=solver, class_weight=weights, max_iter=3, **more)
        seed = None if solver == "m2" else 3
        pipe = pipeline(StandardScaler(fit_mode="noisy"), model, epsilon=9.0, random_state=seed)
        one = self.released(pipe, X, Y, sample_weight=WEIGHTS)
        assert pipe.certificate_.verify()
        other = self.released(clone(pipe), folder, "y", sample_weight="w")
        assert (one == other) == (seed is not None)

    @pytest.mark.parametrize("adjacency", [Adjacency.add_remove(), Adjacency.user_level(2)], ids=["rows", "persons"])
    @pytest.mark.parametrize("weights", [None, "balanced"], ids=str)
    def test_secret_slots(self, adjacency, weights, tmp_path):
        frame = self.FRAME if adjacency.bounds_contributions else self.FRAME.drop(columns="who")
        pq.write_table(pa.Table.from_pandas(frame), tmp_path / "0.parquet", row_group_size=999)
        named = {"groups": "who"} if adjacency.bounds_contributions else {}
        domain = Domain(n_rows=N + 99, max_weight=CAP, adjacency=adjacency)
        model = LogisticRegression((0, 1), class_weight=weights, max_iter=3)
        pipe = pipeline(model, domain=domain, random_state=1)
        one = self.released(pipe, frame, "y", sample_weight="w", **named)
        assert one == self.released(clone(pipe), tmp_path, "y", sample_weight="w", **named)
        assert one != self.released(
            clone(pipe), frame.assign(w=frame["w"][::-1].to_numpy()), "y", sample_weight="w", **named
        )

    def test_names_and_places(self):
        seeded = pipeline(random_state=0)
        one = self.released(seeded, X, Y, sample_weight=WEIGHTS)
        frame = self.FRAME.drop(columns="who")
        assert one == self.released(seeded, X, Y, logisticregression__sample_weight=WEIGHTS.tolist())
        assert one == self.released(seeded, frame, "y", sample_weight="w")
        assert one == self.released(seeded, frame[["a", "b", "c"]], Y, sample_weight=frame["w"])

    def test_only_the_ratio_to_the_cap_counts(self):
        model = LogisticRegression((0, 1), alpha=0.0, max_iter=6)  # beside a penalty the weights themselves count
        ones = {
            cap: self.released(pipeline(model, max_weight=cap, random_state=0), X, Y, sample_weight=np.full(N, cap))
            for cap in (1.0, 8.0)
        }
        unweighted = make_pipeline(
            *(clone(step) for _, step in pipeline(model).steps), epsilon=5.0, delta=1e-6, random_state=0
        )
        assert ones[1.0] == ones[8.0]
        assert ones[1.0].keys() == self.released(unweighted, X, Y).keys()


class TestBalanced:
    def fitted(self, kind=LogisticRegression, **own):
        model = kind((0, 1, 2), class_weight="balanced", max_iter=4)
        return pipeline(model, domain=Domain(), **own).fit(X, SEVERAL)

    @pytest.mark.parametrize(
        ("kind", "diagnostics"),
        [(LogisticRegression, "auto"), (LogisticRegression, None), (GradientBoostingClassifier, None)],
    )
    def test_numbers_of_rows_are_released_beside_the_model(self, kind, diagnostics):
        pipe = self.fitted(kind, diagnostics=diagnostics)
        found = pipe.certificate_.record.diagnostics
        shares = {share.column: share.share for share in found.shares if share.kind == CLASS}
        for label in (0, 1, 2):
            assert shares[str(label)] == pytest.approx(np.mean(label == SEVERAL), abs=6 * found.noise_scale / N)
        assert all(share.kind == CLASS for share in found.shares) == (diagnostics is None)
        assert pipe.certificate_.verify()
        assert 0 < found.mu**2 <= 0.0151 * pipe.certificate_.record.total.mu**2

    def test_no_class_is_called_out_for_being_large(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", DiagnosticWarning)
            self.fitted()

    def test_weights_are_those_of_scikit_learn(self):
        counts = np.bincount(SEVERAL).astype(float)
        factors, largest = balanced_factors(counts, 1.0)
        theirs_ = compute_class_weight("balanced", classes=np.arange(3), y=SEVERAL)
        np.testing.assert_allclose(np.array(factors) * largest, theirs_)

    def test_noise_makes_no_class_heavy(self):
        factors, largest = balanced_factors(np.array([1000.0, -3.0]), 50.0)
        assert factors == (50 / 1000, 1.0)
        assert largest == pytest.approx(1050 / (2 * 50))

    def test_rare_classes_are_found(self):
        rare = (np.quantile(SCORES, 0.97) < SCORES).astype(int)
        found = {}
        for weights in (None, "balanced"):
            model = LogisticRegression((0, 1), class_weight=weights, learning_rate=5.0)
            found[weights] = pipeline(model, domain=Domain(), epsilon=8.0).fit(X, rare).predict(X)[rare == 1].mean()
        assert found["balanced"] > found[None] + 0.1

    def test_no_budget_is_said_before_a_row_is_looked_at(self):
        pipe = pipeline(LogisticRegression((0, 1), class_weight="balanced"), domain=Domain(), epsilon=1.0, delta=0.0)
        with pytest.raises(PpdpError):
            pipe.fit(X, Y)

    def test_alone_nobody_releases_them(self):
        with pytest.raises(InvalidParameter, match="balanced"):
            LogisticRegression((0, 1), class_weight="balanced", noise_scale=0.1).fit(X, Y)
        with pytest.raises(InvalidParameter, match="output"):
            pipeline(LogisticRegression((0, 1), class_weight="balanced", solver="output"), domain=Domain()).fit(X, Y)

    def test_classes_are_declared(self):
        for weights in ("balanced", {0: 2.0}):
            with pytest.raises(MissingBound, match="classes"):
                pipeline(LogisticRegression(class_weight=weights), domain=Domain()).fit(X, Y)


class Hostile:
    def __float__(self):
        raise RuntimeError("SECRET")


OF_ROWS = {
    "no cap": ({"domain": Domain()}, WEIGHTS, MissingBound, "max_weight"),
    "no weights": ({}, None, InvalidInput, "no row has a weight"),
    "too few": ({}, WEIGHTS[:9], InvalidInput, "one weight for every row"),
    "a matrix": ({}, WEIGHTS[:, None] + np.zeros(2), InvalidInput, "column"),
    "complex": ({}, WEIGHTS.astype(complex), InvalidInput, "real numbers"),
    "dates": ({}, pd.date_range("2020", periods=N), InvalidInput, "real numbers"),
    "lists": ({}, pa.array([[1.0]] * N), InvalidInput, "real numbers"),
    "lists of polars": ({}, pl.Series([[1.0]] * N), InvalidInput, "real numbers"),
    "structs of polars": ({}, pl.Series([{"w": 1.0}] * N), InvalidInput, "real numbers"),
    "a name": ({}, "w", InvalidInput, "name of a column"),
}
OF_CLASSES = {
    "an unknown label": {2: 1.0},
    "a negative one": {0: -1.0},
    "an infinite one": {0: np.inf},
    "no number": {0: "heavy"},
    "zeros": {0: 0.0, 1: 0},
    "a word": "balance",
    "a list": [1.0, 2.0],
}
OF_CELLS = {
    "missing": np.where(WEIGHTS > 11, np.nan, WEIGHTS),
    "negative": np.where(WEIGHTS > 11, -1.0, WEIGHTS),
    "infinite": np.where(WEIGHTS > 11, np.inf, WEIGHTS),
    "zeros": np.zeros(N),
    "words": np.where(WEIGHTS > 11, "SECRET", "1.5"),
}


class TestBadInput:
    @pytest.mark.parametrize("what", OF_ROWS)
    def test_the_form_of_weights_costs_nothing(self, what):
        own, weights, kind, words = OF_ROWS[what]
        ledger = Ledger(epsilon=50.0, delta=1e-3)
        with pytest.raises(kind, match=words) as refused:
            pipeline(ledger=ledger, **own).fit(X, Y, sample_weight=weights)
        assert refused.value.fix
        assert len(ledger) == 0

    @pytest.mark.parametrize("what", OF_CLASSES)
    def test_weights_of_classes_cost_nothing(self, what):
        ledger = Ledger(epsilon=50.0, delta=1e-3)
        model = LogisticRegression((0, 1), class_weight=OF_CLASSES[what])
        with pytest.raises(InvalidParameter, match="class_weight") as refused:
            pipeline(model, domain=Domain(), ledger=ledger).fit(X, Y)
        assert refused.value.fix
        assert len(ledger) == 0

    @pytest.mark.parametrize("what", OF_CELLS)
    def test_cells_are_errors_or_repaired(self, what):
        with pytest.raises(InvalidValue, match="sample_weight") as refused:
            pipeline().fit(X, Y, sample_weight=OF_CELLS[what])
        assert "SECRET" not in str(refused.value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiagnosticWarning)
            repaired = pipeline(on_invalid="repair", random_state=0).fit(X, Y, sample_weight=OF_CELLS[what])
            good = pd.to_numeric(pd.Series(OF_CELLS[what]), errors="coerce").to_numpy(dtype=float)
            good = np.where(np.isfinite(good) & (good >= 0), good, 0.0)
            by_hand = pipeline(on_invalid="repair", random_state=0).fit(X, Y, sample_weight=good)
        np.testing.assert_array_equal(repaired[-1].coef_, by_hand[-1].coef_)

    def test_every_cell_is_read_by_itself(self):
        odd = [None, pd.NA, pd.NaT, "", "heavy", "2.5", "-1", 1j, Decimal("1.5"), Fraction(1, 3), Hostile(), -0.0]
        read = [0.0, 0.0, 0.0, 0.0, 0.0, 2.5, 0.0, 0.0, 1.5, 1 / 3, 0.0, 0.0]
        together = column([*odd, 4.0])
        factor, wrong = read_weights(together, CAP, "repair")
        np.testing.assert_allclose(factor * CAP, [*read, 4.0])
        assert wrong.tolist() == [*(value == 0.0 for value in read[:-1]), False, False]
        for place, cell in enumerate(odd):
            held = np.full(3, None)
            held[1] = cell
            assert read_weights(held, CAP, "repair")[0][1] == factor[place]

    def test_what_is_clipped_is_counted_and_called_out(self):
        pipe = pipeline(max_weight=1.0)
        with pytest.warns(DiagnosticWarning, match="max_weight"):
            pipe.fit(X, Y, sample_weight=WEIGHTS)
        (share,) = [one.share for one in pipe.certificate_.record.diagnostics.shares if one.kind == WEIGHT]
        assert share == pytest.approx(np.mean(WEIGHTS > 1), abs=0.05)

    @pytest.mark.parametrize(
        ("steps", "where"),
        [((Deduplicator(), LogisticRegression((0, 1))), "deduplicator"), ((GaussianMechanism(),), "gaussianmechanism")],
    )
    def test_steps_that_do_not_know_weights(self, steps, where):
        with pytest.raises(UnsupportedOrder, match=where):
            pipeline(*steps).fit(X, Y, sample_weight=WEIGHTS)
        assert pipeline(Deduplicator(), LogisticRegression((0, 1), class_weight={1: 2.0}), domain=Domain()).fit(X, Y)

    def test_other_names(self):
        for wrong, meant in (("weights", "sample_weight"), ("minmaxscaler__sample_weight", "sample_weight")):
            with pytest.raises(UnknownParameter, match=wrong) as refused:
                pipeline().fit(X, Y, **{wrong: WEIGHTS})
            assert meant in refused.value.fix or "X, " in refused.value.fix
        with pytest.raises(UnknownParameter, match="two"):
            pipeline().fit(X, Y, sample_weight=WEIGHTS, logisticregression__sample_weight=WEIGHTS)

    def test_a_plan_promises_the_cap(self):
        pipe = pipeline()
        pipe.plan(Domain(n_rows=N, n_features=3))
        pipe.domain = Domain(max_weight=99.0)
        with pytest.raises(PpdpError, match="max_weight"):
            pipe.fit(X, Y, sample_weight=WEIGHTS)


class TestAround:
    def test_search(self):
        grid = {"logisticregression__class_weight": [None, {1: 3.0}, "balanced"]}
        search = PrivateSearchCV(pipeline(), grid, epsilon=8.0, delta=1e-6, random_state=0)
        one = search.fit(X, Y, sample_weight=WEIGHTS).best_estimator_[-1].coef_
        assert search.certificate_.verify()
        other = clone(search).fit(X, Y, sample_weight=np.where(X[:, 1] > 0, CAP, 0.0)).best_estimator_[-1].coef_
        assert not np.array_equal(one, other)
        with pytest.raises(InvalidInput, match="weight"):
            clone(search).fit(X, Y)

    def test_routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            asked = pipeline().set_fit_request(sample_weight=True)
            found = cross_validate(asked, X, Y, params={"sample_weight": WEIGHTS}, cv=2, error_score="raise")
        assert (found["test_score"] > 0.6).all()

    @pytest.mark.parametrize("weights", [{0: 1.0, 1: 5.0}, "balanced"], ids=str)
    def test_conversion(self, weights):
        model = theirs.LogisticRegression(class_weight=weights)
        pipe = Pipeline.from_sklearn(model, ranges=(-1, 1), classes=(0, 1))
        assert pipe[-1].class_weight == weights
        fitted = pipe.set_params(epsilon=8.0).fit(X, Y)
        np.testing.assert_array_equal(fitted.release_.to_sklearn().predict(X), fitted.predict(X))

    def test_an_export_predicts_the_same(self, tmp_path):
        pipe = pipeline(LogisticRegression((0, 1), class_weight={1: 3.0}), dataset="weighted")
        pipe.fit(X, Y, sample_weight=WEIGHTS).export(tmp_path / "model.zip")
        loaded = ppdp.load(tmp_path / "model.zip")
        np.testing.assert_array_equal(loaded.predict(X), pipe.predict(X))
        facts = {fact.name: fact.value for fact in loaded.certificate_.record.facts}
        assert (facts["max_weight"], facts["weight of class 1"]) == ("12", "3")

    def test_no_weights_stay_in_the_traceback(self):
        with pytest.raises(InvalidValue) as refused:
            pipeline().fit(X, Y, sample_weight=OF_CELLS["missing"])
        trace = refused.value.__traceback__.tb_next
        while trace is not None:
            assert not any(value is OF_CELLS["missing"] for value in trace.tb_frame.f_locals.values())
            trace = trace.tb_next

    def test_a_rehearsal_needs_no_weights(self):
        assert pipeline().plan(Domain(n_rows=N, n_features=3)).mechanism is not None
        assert pipeline().forecast(Domain(n_rows=2000, n_features=3), epsilons=(1.0,)) is not None
