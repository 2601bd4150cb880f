"""diffprivlib's own code against an adversary and the auditor: what its noise hides of two neighbouring datasets."""

import math
from dataclasses import replace

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named

pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")


models = pytest.importorskip("diffprivlib.models")

from diffprivlib import BudgetAccountant  # noqa: E402
from diffprivlib import mechanisms as theirs  # noqa: E402
from diffprivlib.models import linear_regression, naive_bayes  # noqa: E402

from ppdp.bounds.diffprivlib import objective_noise  # noqa: E402
from ppdp.core.adjacency import Adjacency  # noqa: E402
from ppdp.interop import Diffprivlib  # noqa: E402
from ppdp.privacy.noise.sampler import Noise  # noqa: E402

ONE = Adjacency.replace().distance
every_distance = pytest.mark.parametrize("distance", DISTANCES, ids=named)


class Recorder:
    """Stands in for diffprivlib's mechanisms in one of its modules."""

    def __init__(self, monkeypatch, module, **answers):
        self.notes = []
        for name, answer in answers.items():
            monkeypatch.setattr(module, name, self._recording(getattr(theirs, name), answer))

    def _recording(self, kind, answer):
        notes = self.notes

        class Recording(kind):
            loss = staticmethod(LOSSES[kind.__name__])

            def randomise(self, value=None):
                notes.append((self, value))
                return answer(self)

        return Recording

    def asked(self, mechanism, domain, rows):
        """What was asked on these rows, in order."""
        self.notes.clear()
        mechanism.release(rows, mechanism.query_spec(domain), Noise(0), 1.0)
        return list(self.notes)


def laplace_loss(mechanism, value, other):
    return abs(value - other) * mechanism.epsilon / mechanism.sensitivity


def bounded_loss(mechanism, value, other):
    scale, low, high = mechanism._find_scale(), mechanism.lower, mechanism.upper
    value, other = (min(max(v, low), high) for v in (value, other))

    def room(v):
        return 1 - (math.exp((low - v) / scale) + math.exp((v - high) / scale)) / 2

    return abs(value - other) / scale + abs(math.log(room(value) / room(other)))


LOSSES = {
    **dict.fromkeys(("Laplace", "LaplaceFolded", "LaplaceTruncated", "GeometricTruncated"), laplace_loss),
    "LaplaceBoundedDomain": bounded_loss,
}


def largest_share(mechanism, domain, distance, cost, **effort):
    """How much of the bound an adversary reaches; one run has epsilon 1."""
    bound = mechanism.query_spec(domain).privacy_map(domain, distance, 1.0).epsilon(0.0)

    def ratio(pair):
        return cost(pair.left, pair.right) / bound

    return attack(World(domain, distance, labels=True, deleted=True), ratio, **effort)[0]


def step_by_step(recorder, mechanism, domain, dropped=0):
    """Cost of the same questions in the same order, but for the last ones, whose answers are dropped."""

    def cost(left, right):
        sides = [recorder.asked(mechanism, domain, rows) for rows in (left, right)]
        sides = [notes[: len(notes) - dropped] for notes in sides]
        assert len(sides[0]) == len(sides[1])
        total = 0.0
        for (one, value), (two, other) in zip(*sides):
            assert (one.epsilon, one.sensitivity) == (two.epsilon, two.sensitivity)
            total += one.loss(one, value, other)
        return total

    return cost


EFFORT = {"draws": 15, "steps": 15}


@every_distance
@pytest.mark.parametrize("domain", domains(6, 1, 2, y_range=(-1, 1))[::2], ids=named)
def test_linear_regression(monkeypatch, domain, distance):
    recorder = Recorder(monkeypatch, linear_regression, Laplace=lambda _: 0.0, LaplaceFolded=lambda _: 1.0)
    mechanism = Diffprivlib(models.LinearRegression())
    ask = step_by_step(recorder, mechanism, domain)

    def cost(left, right):
        return ask(*(replace(rows, y=np.where(rows.weight > 0, 2 * rows.y - 1, 0.0)) for rows in (left, right)))

    share = largest_share(mechanism, domain, distance, cost, **EFFORT)
    assert share <= 1 + 1e-9
    assert share > (0.5 if distance == ONE and domain.d == 1 else 0.1)


@every_distance
@pytest.mark.parametrize("answer", [0.5, 1.0])
@pytest.mark.parametrize("domain", domains(6, 1, 2, classes=(0, 1))[::4], ids=named)
def test_naive_bayes(monkeypatch, domain, distance, answer):
    recorder = Recorder(
        monkeypatch,
        naive_bayes,
        GeometricTruncated=lambda _: 4,
        LaplaceTruncated=lambda m: m.lower + answer * (m.upper - m.lower),
        LaplaceBoundedDomain=lambda m: m.upper / 2,
    )
    mechanism = Diffprivlib(models.GaussianNB())
    deleted = 2 * domain.d  # mean and variance of the class of deleted rows
    cost = step_by_step(recorder, mechanism, domain, dropped=deleted)
    share = largest_share(mechanism, domain, distance, cost, **EFFORT)
    assert share <= 1 + 1e-9
    assert share > (0.4 if distance == ONE else 0.05)


@pytest.mark.parametrize(("given", "norm", "penalty"), [(1.0, 2.0, 10.0), (0.2, 2.0, 0.1), (0.2, 0.5, 1.0)])
def test_the_vector_mechanism_adds_what_the_formula_says(given, norm, penalty):
    """Its linear term has the length of a gamma variable, in every direction alike, and its curvature is the stated."""
    n, d, runs = 7, 3, 1000
    scale, curvature = objective_noise(given, norm, penalty)
    setting = {"function_sensitivity": 0.25, "data_sensitivity": norm, "dimension": d, "alpha": penalty, "n": n}
    found = []
    for seed in range(runs):
        mechanism = theirs.Vector(epsilon=given, random_state=seed, **setting)
        noisy = mechanism.randomise(lambda _: (0.0, np.zeros(d)))
        _, linear = noisy(np.zeros(d))
        _, there = noisy(np.ones(d))
        np.testing.assert_allclose(n * (there - linear) + penalty, curvature)
        found.append(n * linear)
    lengths = np.linalg.norm(found, axis=1)
    assert np.mean(lengths) == pytest.approx(d * scale, rel=5 / math.sqrt(runs))
    assert np.var(lengths) == pytest.approx(d * scale**2, rel=0.3)
    directions = np.array(found) / lengths[:, None]
    assert np.abs(directions.mean(axis=0)).max() < 5 / math.sqrt(runs)


def test_the_released_model_is_the_minimiser_of_the_perturbed_objective(monkeypatch):
    """What is left of its gradient is far below what one row does."""
    from diffprivlib.models import logistic_regression

    kept = []

    class Keeping(theirs.Vector):
        def randomise(self, value):
            kept.append((self.n, super().randomise(value)))
            return kept[-1][1]

    monkeypatch.setattr(logistic_regression, "Vector", Keeping)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 5)), rng.integers(3, size=3000)
    mechanism = Diffprivlib(models.LogisticRegression(), noise_scale=1.0, random_state=0).fit(X, y)
    theta = np.column_stack([mechanism.coef_, mechanism.intercept_])
    padded = np.vstack([np.column_stack([X, np.ones(len(X))]), np.zeros((3, 6))])
    labels = np.concatenate([y, range(3)])
    for label, line, (n, noisy) in zip(range(3), theta, kept):
        _, gradient = noisy(line, padded, (labels == label).astype(float), np.ones(n), 1 / n)
        assert n * np.linalg.norm(gradient) < 1e-2


def test_their_linear_regression_hides_nothing_of_squares_where_the_lower_bound_is_zero(monkeypatch):
    """Why ppdp gives it bounds about zero: the noise on sums of squares has the size of the lower bound alone."""
    recorder = Recorder(monkeypatch, linear_regression, Laplace=lambda _: 0.0, LaplaceFolded=lambda _: 1.0)
    X, y = np.array([[0.3], [0.9]]), np.zeros(2)
    own = {"accountant": BudgetAccountant(), "fit_intercept": False}
    models.LinearRegression(bounds_X=(0, 1), bounds_y=(-1, 1), **own).fit(X, y)
    assert [asked.sensitivity for asked, _ in recorder.notes] == [1.0, 2.0, 0.0]


# ---------------- the auditor


from adapters import diffprivlib_target  # noqa: E402

from ppdp.audit import attack_output  # noqa: E402

# The scikit-learn that diffprivlib needs does not know the newest SciPy.
RUNS = 2000


def audited(model, left, right, **settings):
    return attack_output(diffprivlib_target("audited", model, left, right, **settings), runs=RUNS, random_state=0)


def test_a_scaler_with_public_bounds_hides_a_row():
    model = models.StandardScaler(bounds=(0, 1), with_std=False)
    X = np.zeros((3, 1))
    finding = audited(model, (X,), (np.vstack([X[1:], [[1.0]]]),), learned=["mean_"])
    assert not finding.violated
    assert finding.epsilon_low > 0.2


def test_a_sum_of_squares_without_noise_is_found():
    """Bounds (0, 1): noise is drawn for the square of the lower bound alone."""
    model = models.LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False)
    X, y = np.full((3, 1), 1e-3), np.array([0.0, 1.0, 0.0])
    finding = audited(model, (X, y), (np.vstack([X[1:], [[1.0]]]), y))
    assert finding.violated
    assert finding.epsilon_low > 2
