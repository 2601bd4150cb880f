"""What training on batches really costs, enumerated and integrated, against what is certified.

The gradients are those of the mechanism's own code; every batch that can be drawn is taken with its exact probability.
"""

import itertools
import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Pair

from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import lookup
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError, UnsupportedOrder
from ppdp.mechanisms import LinearRegression, LinearSVC, LogisticRegression
from ppdp.mechanisms.learn import gradient_solvers
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.privacy.gaussian import gaussian_delta

ONE = Adjacency.replace().distance

DOMAIN = Domain(n_rows=6, n_features=1, row_norm=1.0)
CLIP, SIGMA, BATCH = 0.5, 0.4, 2
EPSILONS = np.array([0.0, 0.3, 1.5])


def model(solver, steps, **parameters):
    own = {
        "max_grad_norm": CLIP,
        "noise_scale": SIGMA,
        "batch_size": BATCH,
        "fit_intercept": False,
        "max_coef_norm": 2.0,
    }
    return LinearRegression((-1, 1), **{**own, "solver": solver, "max_iter": steps, **parameters})


def means(solver, rows, theta=0.0):
    """Answers without noise, in units of the noise, of all batches, and the probabilities of those."""
    gradient = ClippedGradient.of(rows, LinearRegression()._residuals, CLIP, fit_intercept=False)
    n, rate = rows.n, BATCH / rows.n
    sizes = range(n + 1) if solver == "poisson" else [BATCH]
    found, weights = [], []
    for size in sizes:
        for batch in itertools.combinations(range(n), size):
            found.append(gradient.on(np.array(batch, dtype=int), BATCH)(np.array([[theta]]))[0, 0] / SIGMA)
            weights.append(rate**size * (1 - rate) ** (n - size) if solver == "poisson" else 1 / math.comb(n, BATCH))
    return np.array(found), np.array(weights)


GRID = np.linspace(-14, 14, 28_001)


def density(mixture, grid=GRID):
    centres, weights = mixture
    distinct, which = np.unique(np.round(centres, 12), return_inverse=True)
    heights = np.bincount(which, weights)
    return np.exp(-((grid[:, None] - distinct) ** 2) / 2) @ heights / math.sqrt(2 * math.pi)


def deltas(p, q, cell):
    """Exact delta at every epsilon, the worse way round."""
    return np.array(
        [max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((p, q), (q, p))) * cell for e in EPSILONS]
    )


def certified(solver, distance, steps):
    loss = model(solver, steps).privacy_map(DOMAIN, distance)
    return np.array([loss.delta(float(e)) for e in EPSILONS])


def rows(X, y, weight=None):
    X = np.asarray(X, dtype=float)[:, None]
    return Rows(X, np.asarray(y, dtype=float), np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float))


ONES, ZEROS = np.ones(6), np.zeros(6)
OTHERS = np.array([1.0, -1, -1, -1, -1, -1])
PAIRS = {  # (distance, one dataset, another one): at theta = 0 a row pulls by its features times its target
    "replaced, others 0": (Distance(replaced=1), rows([1, 0, 0, 0, 0, 0], ONES), rows([-1, 0, 0, 0, 0, 0], ONES)),
    "replaced, others against": (Distance(replaced=1), rows(ONES, OTHERS), rows(ONES, -ONES)),
    "toggled": (Distance(toggled=1), rows([1, 0, 0, 0, 0, 0], ONES), rows(ZEROS, ONES, [0, 1, 1, 1, 1, 1])),
    "moved": (
        Distance(replaced=1, moved=5, radius=0.1),
        rows([1, 0.1, 0.1, 0.1, 0.1, 0.1], ONES),
        rows([-1, 0, 0, 0, 0, 0], ONES),
    ),
    "two replaced": (Distance(replaced=2), rows([1, 1, 0, 0, 0, 0], ONES), rows([-1, -1, 0, 0, 0, 0], ONES)),
}
LEAST = {  # how much of the certified delta is there
    ("poisson", "replaced, others 0"): 0.99,
    ("poisson", "toggled"): 0.99,
    ("poisson", "two replaced"): 0.99,
    ("poisson", "moved"): 0.5,
    ("fixed-size", "replaced, others against"): 0.99,
    ("fixed-size", "moved"): 0.1,
}
cases = pytest.mark.parametrize(
    ("solver", "pair"),
    [(s, p) for s in ("poisson", "fixed-size") for p in PAIRS if (s, p) != ("fixed-size", "two replaced")],
)


@cases
def test_no_step_costs_more_than_is_certified_and_the_worst_as_much(solver, pair):
    distance, left, right = PAIRS[pair]
    p, q = (density(means(solver, one)) for one in (left, right))
    truth, bound = deltas(p, q, GRID[1] - GRID[0]), certified(solver, distance, 1)
    assert (truth <= bound * (1 + 1e-6) + 1e-12).all()
    assert max(truth[:3] / bound[:3]) >= LEAST.get((solver, pair), 0.0)


@cases
@pytest.mark.repeated("solver")
def test_two_steps_that_depend_on_each_other_cost_no_more(solver, pair):
    """The second gradient is taken where the first noisy answer has led."""
    distance, left, right = PAIRS[pair]
    coarse, firsts, laws = GRID[4000:-4000:20], [], []  # to 6 units beyond the farthest mean
    for one in (left, right):
        firsts.append(density(means(solver, one), coarse))
        gentle = [density(means(solver, one, theta), coarse) for theta in (-0.3, 0.3)]  # by the sign of the first
        laws.append(np.where((coarse < 0)[:, None], *gentle))
    joint = [first[:, None] * law for first, law in zip(firsts, laws)]
    truth = deltas(*joint, (coarse[1] - coarse[0]) ** 2)
    assert (truth <= certified(solver, distance, 2) * (1 + 1e-5) + 1e-9).all()


def test_all_rows_in_every_batch_is_the_gaussian_mechanism():
    """At rate 1 the textbook number, √T 2C/(nσ), but for the grid of the distributions."""
    for solver in ("poisson", "fixed-size"):
        loss = model(solver, 9, batch_size=6, noise_scale=1.0).privacy_map(DOMAIN, ONE)
        for epsilon in (0.0, 0.5, 1.0):
            exact = gaussian_delta(3 * 2 * CLIP / 6, epsilon)
            assert exact * (1 - 1e-9) <= loss.delta(epsilon) <= exact * 1.001 + 1e-9


class TestWhatCounts:
    @pytest.mark.parametrize("solver", ["poisson", "fixed-size"])
    def test_weight_lowers_nothing(self, solver):
        """Sampling hides which rows differ, never how much weight they carry."""
        light, whole = (certified(solver, d, 1) for d in (Distance(replaced=1, mass=0.5), Distance(replaced=1)))
        np.testing.assert_array_equal(light, whole)
        assert (whole > 0).all()

    @pytest.mark.parametrize("solver", ["poisson", "fixed-size"])
    def test_a_toggled_row_costs(self, solver):
        assert model(solver, 3).privacy_map(DOMAIN, Distance(toggled=1, mass=0.1)).delta(0.3) > 1e-3

    @pytest.mark.parametrize("solver", ["poisson", "fixed-size"])
    def test_reweighted_rows_are_refused(self, solver):
        with pytest.raises(UnsupportedOrder, match="weight"):
            model(solver, 3).privacy_map(DOMAIN, Distance(replaced=1, reweighted=2))

    def test_one_row_at_most_in_batches_of_fixed_size(self):
        for distance in (Distance(replaced=2), Distance(replaced=1, toggled=1)):
            with pytest.raises(UnsupportedOrder, match="one replaced row"):
                model("fixed-size", 3).privacy_map(DOMAIN, distance)

    @pytest.mark.parametrize("solver", ["poisson", "fixed-size"])
    def test_matching_up_to_a_permutation_is_free_where_samples_are_exchangeable(self, solver):
        here, elsewhere = (certified(solver, Distance(replaced=1, reordered=r), 3) for r in (0, 2))
        np.testing.assert_array_equal(here, elsewhere)

    @pytest.mark.parametrize("solver", ["epochs", "hidden"])
    def test_and_is_charged_where_rows_have_a_place(self, solver):
        parameters = {} if solver == "epochs" else {"learning_rate": 0.5, "max_iter": "auto"}
        here, there = (
            model(solver, 2, **parameters).privacy_map(DOMAIN, Distance(replaced=1, reordered=r)) for r in (0, 2)
        )
        assert there.delta(1.0) > here.delta(1.0)

    @pytest.mark.parametrize("solver", ["poisson", "fixed-size"])
    def test_rounding_costs_a_gaussian_release_with_a_share_of_the_noise(self, solver):
        """More rows, more rounding; the share that is split off and what it costs stay small."""
        found = []
        for n in (10**3, 10**6):
            domain = Domain(n_rows=n, n_features=50, row_norm=1.0)
            loss = model(solver, 100, batch_size=n // 50, noise_scale=3.0 / (n // 50)).privacy_map(domain, ONE)
            noise = loss.parts[0].noise_scale
            assert 3.0 * 0.99 < noise < 3.0
            assert 0 < loss.mu < 0.02
            found.append(loss.mu)
        assert found[0] < found[1]


class Recorder:
    """Noise that answers what it is told to, the same on both datasets, and records what was asked."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def words(self, count):
        return np.arange(count, dtype=np.uint64)  # rows stay in their places

    def release(self, value, noise_scale, bound):
        assert np.linalg.norm(value) <= bound * ROUNDING
        self.asked.append(value)
        return self.answers[len(self.asked) - 1]


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("domain", domains(8, 2, max_missing=0)[:1], ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("kind")
def test_no_pair_exceeds_the_sensitivity_of_whole_passes(kind, domain, distance):
    """All answers of two passes together, whatever was answered before."""
    world, rng = World(domain, distance, labels=True, deleted=True), np.random.default_rng(0)
    for clip, batch_size in ((10.0, 3), (0.3, 1), (1.0, 8)):
        settings = {
            "solver": "epochs",
            "max_iter": 2,
            "batch_size": batch_size,
            "max_grad_norm": clip,
            "learning_rate": 1.0,
        }
        chosen = kind((0, 1), max_coef_norm=1.0, **settings)
        question = chosen.query_spec(domain)
        bound = math.sqrt(question.steps) * question.sensitivity(domain, distance)
        answers = rng.standard_normal((question.steps, question.size))

        def ratio(pair, chosen=chosen, question=question, bound=bound, answers=answers):
            recorders = Recorder(answers), Recorder(answers)
            for side, recorder in zip((pair.left, pair.right), recorders):
                chosen.release(side, question, recorder, 1.0)
            return float(np.linalg.norm(np.array(recorders[0].asked) - np.array(recorders[1].asked))) / bound

        X = np.tile([domain.row_norm, 0.0], (8, 1))
        first = [Pair.of(X * s, -X * s, (np.full(8, float(label)),) * 2) for s in (1, -1) for label in (0, 1)]
        reached, _ = attack(world, ratio, draws=10, steps=20, first=first)
        assert reached <= ROUNDING
        if distance == ONE and clip == 0.3:
            assert reached >= 0.99


HIDDEN = {"solver": "hidden", "max_grad_norm": 1.0, "batch_size": 1, "fit_intercept": False, "max_coef_norm": 1e4}


class TestHidden:
    """One dimension, one row per step in its place: every law is a mixture of Gaussians."""

    def law(self, chosen, X, monkeypatch):
        """Means and variances of the iterate at every time: the means by the mechanism itself, without noise."""
        n, step = len(X), chosen.learning_rate
        monkeypatch.setattr(gradient_solvers, "secret_one", lambda noise, items, count: np.array(list(items)))
        domain = Domain(n_rows=n, n_features=1, row_norm=1.0)

        class Quiet(Recorder):
            def release(self, value, noise_scale, bound):
                return value

        centres = chosen.release(rows(X, np.ones(n)), chosen.query_spec(domain), Quiet(()), 1.0)["theta"]
        variances, v = [], 0.0
        for x in X:
            v = (1 - step * x**2) ** 2 * v + (step * chosen.noise_scale) ** 2
            variances.append(v)
        return centres, np.array(variances)

    def divergence(self, one, other, alpha):
        x = np.linspace(-60, 60, 12_001)

        def log_density(law):
            centres, variances = law
            logs = -((x[:, None] - centres) ** 2) / (2 * variances) - np.log(2 * np.pi * variances) / 2
            return np.logaddexp.reduce(logs, axis=1) - math.log(len(centres))

        p, q = log_density(one), log_density(other)
        return float(np.logaddexp.reduce(alpha * p - (alpha - 1) * q) + math.log(x[1] - x[0])) / (alpha - 1)

    @pytest.mark.parametrize("sigma", [1.0, 3.0])
    @pytest.mark.parametrize("step_size", [0.5, 2.0])
    @pytest.mark.repeated("step_size")
    def test_no_pass_costs_more_than_its_curve(self, sigma, step_size, monkeypatch):
        chosen = LinearRegression((-1, 1), noise_scale=sigma, learning_rate=step_size, **HIDDEN)
        rng, reached = np.random.default_rng(0), 0.0
        for n in (1, 2, 5):
            domain = Domain(n_rows=n, n_features=1, row_norm=1.0)
            loss = chosen.privacy_map(domain, ONE)
            for place in range(n):
                for others in ("none", "random"):
                    X = np.zeros(n) if others == "none" else rng.uniform(-1, 1, n)
                    X[place], Z = 1.0, X.copy()
                    Z[place] = -1.0
                    laws = [self.law(chosen, one, monkeypatch) for one in (X, Z)]
                    for alpha in (1.5, 4.0):
                        ratio = max(self.divergence(*pair, alpha) for pair in (laws, laws[::-1])) / loss.renyi(alpha)
                        assert ratio <= 1 + 1e-6
                        reached = max(reached, ratio)
        assert reached >= 0.99

    def test_what_would_break_the_proof_is_no_certificate(self):
        hidden = lookup("learning.hidden", "privacy")
        domain = Domain(n_rows=50, n_features=2, row_norm=2.0)
        common = {"noise_scale": 1.0, "coef_norm": 1.0, "fit_intercept": False, "batch_size": 5}
        limits = {
            "logistic": (2 / (0.25 * 4), {}),
            "squared": (2 / 4, {"y_range": (0, 1)}),
            "hinge": (2 / (4 / 0.4), {"smoothing": 0.2}),
            "softmax": (2 / (0.5 * 4), {"n_classes": 3}),
        }
        for loss, (longest, own) in limits.items():
            given = {"loss": loss, "clip": 10.0, **common, **own}
            assert hidden(domain, ONE, step_size=longest, **given).parts
            with pytest.raises(CertificateError):
                hidden(domain, ONE, step_size=longest * 1.001, **given)
        with pytest.raises(CertificateError):  # clipped, the softmax is the gradient of nothing
            hidden(domain, ONE, step_size=0.1, loss="softmax", n_classes=3, clip=1.0, **common)
