"""The replay audit refutes bugs of the kinds that others found in libraries, and none of our own steps."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from effort import rounds
from planted_bugs import GAPS, PLANTED, N, X, Y, planned
from scipy.sparse import csr_array
from sklearn.base import clone, is_regressor

from ppdp import Adjacency, Domain, Ledger, Pipeline
from ppdp.audit import ReplayReport, audit
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter
from ppdp.interop.diffprivlib.step import Diffprivlib
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.mechanisms.learn.gradient_solvers import PoissonBatches
from ppdp.pipeline import execute
from ppdp.pipeline.planning.diagnostics import PlannedDiagnostics
from ppdp.testing import REGISTRY
from ppdp.transformers import Deduplicator, MinMaxScaler, NormClipper, RandomProjection, StandardScaler
from ppdp.transformers.base import Stage

# ---------------------------------------------------------------- no false alarms


def pipelines():
    """Every example of the registry, behind a clipper; stages in front of two mechanisms and alone."""
    for name, kind in REGISTRY.items():
        step = kind.example()
        if not issubclass(kind, Stage):
            facts = {"y_range": (0, 1)} if is_regressor(step) else {"classes": (0, 1)}
            domain = Domain(**facts) if step.needs_y else None
            long = 0.4 if name == "WishartMechanism" else 0.0  # of which the mean is no direction
            yield name, "", X + long, planned(NormClipper(), step.set_params(noise_scale=None), domain=domain)
            continue
        rows, domain = (GAPS, Domain(max_missing=5)) if step.fills_gaps else (X, None)
        n = 2000 if name == "MedianImputer" else N
        rows = rows if n == N else np.tile(rows, (n // N + 1, 1))[:n]
        domain = domain and Domain(max_missing=n // 10)
        front = (step, NormClipper()) if getattr(step, "reads_cells", False) else (NormClipper(), step)
        if name not in ("MedianImputer", "RobustScaler"):
            yield name, ", model", rows, planned(*front, LogisticRegression((0, 1), max_iter=5), domain=domain)
        if not step.needs_y:
            yield name, ", mean", rows, planned(*front, GaussianMechanism(), delta=0.06 / n, domain=domain)


@pytest.fixture
def stars(monkeypatch):
    """Ends a replay after so many sets of neighbours, in an attack four times as many, and not by the clock."""
    return lambda count: monkeypatch.setattr("ppdp.audit.replay.STARS", rounds(count))


@pytest.mark.parametrize(
    ("step", "rows", "pipe"), [pytest.param(name, *rest, id=name + last) for name, last, *rest in pipelines()]
)
@pytest.mark.repeated("rows", "pipe")
def test_no_example_is_refuted(step, rows, pipe, stars):
    """A stage in front of one of the two mechanisms."""
    stars(1)
    report = audit(pipe, data=(rows, np.resize(Y, len(rows))))
    assert not report.violated, report
    assert report.counted > 0


@pytest.mark.parametrize("gate", ["gaussian", "laplace", "discrete-laplace"])
@pytest.mark.repeated("gate")
def test_a_gate_is_passed_and_what_stands_behind_is_looked_at(gate, stars):
    stars(2)
    scaler = StandardScaler(min_std=0.05, use_floor=False, fit_mode="exact")
    rows = np.random.default_rng(1).uniform(-0.5, 0.5, (400, 2))
    report = audit(planned(NormClipper(), scaler, GaussianMechanism(), gate=gate, epsilon=8.0), data=rows)
    assert not report.violated, report
    assert {"gate", "step1", "step2"} <= {finding.name for finding in report.findings}
    assert report.counted


def test_a_refusal_ends_nothing(stars):
    stars(2)
    scaler = StandardScaler(min_std=0.2, use_floor=False, fit_mode="exact")
    rows = np.random.default_rng(1).uniform(-0.5, 0.5, (400, 2))
    rows[:, 1] *= 1e-3
    report = audit(planned(NormClipper(), scaler, GaussianMechanism()), data=rows)
    assert report.refused
    assert report.word == "VACUOUS"
    assert "The gate refused these rows" in repr(report)
    assert not report.violated


@pytest.mark.parametrize("solver", ["poisson", "fixed-size", "epochs", "hidden", "output"])
def test_no_solver_is_refuted(solver, stars):
    stars(1)
    model = LogisticRegression((0, 1), solver=solver, batch_size=10)
    assert not audit(planned(NormClipper(), model, epsilon=5.0), data=(X, Y)).violated


def test_several_rows_of_one_person(stars):
    stars(10)
    report = audit(planned(NormClipper(), Deduplicator(), GaussianMechanism(), domain=Domain(rows_per_unit=3)), data=X)
    assert not report.violated, report


LASTS = pytest.mark.parametrize("last", [GaussianMechanism(), LaplaceMechanism()], ids=repr)


def with_shares(last, adjacency=None):
    domain = Domain(n_rows=N + 20) if adjacency is not None and adjacency.unbounded else None
    steps = MinMaxScaler(ranges=(-0.5, 0.5)), last
    return planned(*steps, adjacency=adjacency, domain=domain, on_invalid="repair", epsilon=4.0)


@LASTS
@pytest.mark.parametrize("adjacency", [Adjacency.replace(2), Adjacency.add_remove(), Adjacency.user_level(2)], ids=repr)
def test_numbers_of_altered_rows_reach_their_bound(last, adjacency, stars):
    stars(2)
    report = audit(
        with_shares(last, adjacency), data=(X, None, np.arange(N) // 3) if adjacency.bounds_contributions else X
    )
    assert not report.violated, report
    (found,) = (one for one in report.findings if one.name == "diagnostics")
    assert found.ratio == pytest.approx(1.0, rel=1e-6)


# ---------------------------------------------------------------- planted bugs


@LASTS
def test_altered_rows_that_are_counted_twice_are_refuted(last, monkeypatch, stars):
    stars(1)
    counts = execute.altered_counts
    monkeypatch.setattr(execute, "altered_counts", lambda *given: 2 * counts(*given))
    report = audit(with_shares(last), data=X)
    assert "diagnostics" in {one.name for one in report.violations}


@LASTS
def test_numbers_of_altered_rows_with_less_noise_are_refuted(last, monkeypatch, stars):
    stars(1)
    own = PlannedDiagnostics.release

    def less(plan, *given):
        return own(replace(plan, noise_scale=plan.noise_scale / 2), *given)

    monkeypatch.setattr(PlannedDiagnostics, "release", less)
    assert "noisy answers as planned" in repr(audit(with_shares(last), data=X).violations)


def renamed(pipe):
    """The same with classes of another name."""
    twin = planned(*(clone(step) for _, step in pipe.steps), epsilon=pipe.epsilon, domain=pipe.domain)
    for _, step in twin.steps:
        step.__class__ = type("Harmless", (type(step),), {})
    return twin


SEEN_ON_FEW_PAIRS = {"cancellation": 6, "counts of few bits": 6, "uneven noise": 10, "a tree of sums": 10}


@pytest.mark.repeated("called")
@pytest.mark.parametrize("called", [lambda pipe: pipe, renamed], ids=["as planted", "renamed"])
@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_bug_is_refuted_whatever_it_is_called(kind, called, stars):
    if kind != "single precision":  # all are tried
        stars(SEEN_ON_FEW_PAIRS.get(kind, 2))
    rows, pipe = PLANTED[kind]
    labels = (rows[:, 0] > 0).astype(int)
    report = audit(called(pipe), data=(rows, labels), seconds=60.0)
    assert report.violated, f"{kind}: {report}"
    assert report.word == "REFUTED"


def test_one_batch_for_all_steps_is_refuted(monkeypatch, stars):
    """OpenDP 2933: what is amplified by sampling is composed on the same sample."""
    draw = PoissonBatches.draw
    monkeypatch.setattr(PoissonBatches, "draw", lambda *given: [next(iter(draw(*given)))] * given[-1])
    model = LogisticRegression((0, 1), solver="poisson", batch_size=10, max_iter=4)
    stars(2)
    report = audit(planned(NormClipper(), model, epsilon=5.0), data=(X, Y))
    assert "it answers twice on one secret batch, and every step must sample its own" in repr(report.violations)


# ---------------------------------------------------------------- the report, and what it costs


@pytest.fixture(scope="module")
def report() -> ReplayReport:
    return audit(planned(NormClipper(), GaussianMechanism()), data=X, seconds=0.1)


def test_the_report_says_that_it_is_private(report, tmp_path):
    report.save(tmp_path / "replay.json")
    for words in (repr(report), report._repr_html_(), (tmp_path / "replay.json").read_text()):
        assert "PRIVATE" in words
        assert "must not leave" in words
    assert repr(report).startswith("PRIVATE")


def test_nothing_is_charged_or_kept():
    ledger = Ledger(epsilon=30.0, delta=0.01)
    pipe = planned(NormClipper(), GaussianMechanism(), ledger=ledger, dataset="patients")
    state = dict(vars(pipe))
    audit(pipe, data=X, seconds=0.1)
    assert len(ledger) == 0
    assert vars(pipe) == state
    pipe.fit(X)
    assert len(ledger) == 1


def test_it_is_not_counted_as_a_fit():
    pipe = planned(NormClipper(), GaussianMechanism(), dataset="rows that are only replayed")
    audit(pipe, data=X, seconds=0.1)
    assert pipe.fit(X).certificate_["issued"]["fit"] == 1


def test_it_is_the_same_twice_where_the_clock_does_not_decide(monkeypatch):
    monkeypatch.setattr("ppdp.audit.replay.STARS", 3)
    one, other = (audit(planned(NormClipper(), GaussianMechanism()), data=X, seed=4) for _ in range(2))
    assert one.findings == other.findings


def test_another_law_is_not_compared():
    LinearRegression = pytest.importorskip("diffprivlib.models").LinearRegression

    model = LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(0, 1))
    report = audit(
        Pipeline([("clip", NormClipper()), ("model", Diffprivlib(model))], epsilon=5.0, delta=1e-6),
        data=(X, Y.astype(float)),
        seconds=0.1,
    )
    assert "not compared: model" in repr(report)


def test_impossible_questions_are_refused_and_quote_no_cell():
    pipe = planned(NormClipper(), GaussianMechanism())
    with pytest.raises(InvalidParameter, match="cannot be replayed on data"):
        audit(pipe.plan(Domain(n_rows=N, n_features=3)), data=X)
    with pytest.raises(InvalidParameter, match="facts of private rows are the Pipeline's own"):
        audit(pipe, Domain(n_rows=N, n_features=3), data=X)
    with pytest.raises(InvalidInput) as caught:
        audit(pipe, data=np.array([[1.0, 777.0], [np.inf, 2.0]]))
    assert "777" not in str(caught.value)


# ---------------------------------------------------------------- rows that come and go

HIDDEN = Domain(n_rows=N, n_features=3, adjacency=Adjacency.add_remove(2), max_missing=0)


@pytest.mark.parametrize("last", [GaussianMechanism("sum"), LaplaceMechanism("rows")], ids=repr)
@pytest.mark.parametrize("n", [0, 1, 40, N])
@pytest.mark.repeated("last")
def test_rows_are_removed_and_added_where_their_number_is_private(last, n, stars):
    stars(6)
    report = audit(planned(NormClipper(), StandardScaler(), last, domain=HIDDEN), data=X[:n])
    assert not report.violated, report
    assert report.counted
    assert "add or remove up to 2 rows" in repr(report)
    slots = [finding.ratio for finding in report.findings if finding.quantity == "slots"]
    assert max(slots) == 1 or n == 1  # of the one row that is there, and of two that come beside it


@pytest.mark.parametrize("told", ["in a warning", "by a denominator"])
def test_what_depends_on_their_number_is_refuted(told, stars):
    class Counts(GaussianMechanism):
        def answer(self, rows, question):
            present = int(rows.weight.sum())
            if told == "in a warning":
                warnings.warn(f"{present} rows", stacklevel=2)
                return super().answer(rows, question)
            return super().answer(rows, question) * rows.n / present

    stars(6)
    pipe = planned(NormClipper(), Counts("sum"), domain=HIDDEN)
    assert audit(pipe, data=X[:3]).violated
    with pytest.raises(DomainMismatch, match="more rows than n_rows"):
        audit(pipe, data=np.vstack([X, X]))


def test_sparse_rows_are_replayed_as_dense_ones(stars):
    stars(2)
    pipe = planned(NormClipper(), RandomProjection(2, family="oporp"), LaplaceMechanism("rows"), domain=HIDDEN)
    reports = [audit(pipe, data=rows).to_dict() for rows in (csr_array(X), X)]
    assert reports[0]["findings"] == reports[1]["findings"]
