"""diffprivlib's own code attacked in its noise: where it comes from, that none is repeated or shared, and its law."""

import copy
import math
import pickle
import random
from functools import partial

import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.utils import check_random_state

from ppdp.exceptions import PpdpError
from ppdp.interop.diffprivlib.step import Draws
from ppdp.privacy.noise.sampler import Noise

models = pytest.importorskip("diffprivlib.models")

from diffprivlib.mechanisms import LaplaceBoundedDomain  # noqa: E402

from ppdp import Domain, make_pipeline  # noqa: E402
from ppdp.bounds.diffprivlib import objective_noise  # noqa: E402
from ppdp.data.rows import Rows  # noqa: E402
from ppdp.interop import Diffprivlib  # noqa: E402
from ppdp.interop.diffprivlib.models import SUPPORTED  # noqa: E402
from ppdp.transformers import NormClipper  # noqa: E402

STEPS = {
    "LogisticRegression": Diffprivlib(models.LogisticRegression(fit_intercept=False), (0, 1, 2)),
    "LinearRegression": Diffprivlib(models.LinearRegression(fit_intercept=False), y_range=(-1.0, 1.0)),
    "GaussianNB": Diffprivlib(models.GaussianNB(), (0, 1, 2)),
}
every_model = pytest.mark.parametrize("name", list(STEPS))
BACKENDS = ["sequential", "threading", "loky", "multiprocessing"]
CONTINUOUS = {"GaussianNB": 12}  # how many of the released numbers are not made of counts
RUNS, SIGMAS = 200, 6.0  # noise is not seeded here: a test fails by chance once in millions of times


def test_every_supported_model_is_attacked():
    assert {name.rpartition(".")[2] for name in SUPPORTED} == set(STEPS)


def silent_rows(name, n):
    """Rows that say nothing, or, for a regression, as much of one column as of the other; public facts about them."""
    X = np.repeat(np.eye(2), n // 2, axis=0) if name == "LinearRegression" else np.zeros((n, 2))
    y = np.zeros(n) if name == "LinearRegression" else np.arange(n) % 3
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, classes=(0, 1, 2), y_range=(-1.0, 1.0))
    return Rows.of(X, y.astype(float)), domain


def released(name, n, noise=None, runs=1):
    """What is released of silent rows at epsilon 1, shape (runs, numbers), wherever the user would like it computed."""
    step, (rows, domain) = STEPS[name], silent_rows(name, n)
    question = step.query_spec(domain)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        return np.array([step.release(rows, question, noise or Noise(), 1.0)["model"] for _ in range(runs)])


class Tape(Noise):
    """Writes down the operating system's bits, or reads them again."""

    def __init__(self, kept=b""):
        super().__init__()
        self.kept, self.replayed, self.at = kept, bool(kept), 0

    def random_bytes(self, count):
        if not self.replayed:
            self.kept += super().random_bytes(count)
        self.at += count
        return self.kept[self.at - count : self.at]


def assert_other_noise(name, one, other):
    """No number of one release is in the other."""
    one, other = one[: CONTINUOUS.get(name)], other[: CONTINUOUS.get(name)]
    assert np.intersect1d(one, other).size == 0


@every_model
def test_all_noise_is_made_of_the_bits_that_were_handed_over(name, monkeypatch):
    """The same bits give the same release, whatever every other source holds; and all of them were used."""
    first = Tape()
    one = released(name, 300, first)
    assert len(first.kept) >= 128 // 8 * one.size

    def poisoned(self):
        raise AssertionError

    monkeypatch.setattr(random.SystemRandom, "random", poisoned)
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    again = Tape(first.kept)
    np.testing.assert_array_equal(released(name, 300, again), one)
    assert again.at == len(first.kept)
    flipped = bytes(byte ^ 255 for byte in first.kept) * 2
    assert_other_noise(name, released(name, 300, Tape(flipped))[0], one[0])


@pytest.mark.parametrize("backend", BACKENDS)
@every_model
def test_no_seed_and_no_backend_repeats_noise(name, backend):
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300.0) % 3
    pipe = make_pipeline(NormClipper(1.0), STEPS[name], epsilon=3.0)
    found = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        before = repr(np.random.mtrand._rand.get_state(legacy=False))
        with joblib.parallel_config(backend=backend, n_jobs=2):
            pipe.fit(X, np.clip(y, -1, 1) if name == "LinearRegression" else y)
        assert repr(np.random.mtrand._rand.get_state(legacy=False)) == before
        found.append(next(iter(pipe.release_.arrays.values())))
        assert pipe.certificate_.status == "CONDITIONAL"
    assert_other_noise(name, *found)


@every_model
def test_what_is_seeded_says_so(name):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0) % 3 % 2
    pipe = make_pipeline(NormClipper(1.0), STEPS[name], epsilon=3.0, random_state=0)
    found = [pipe.fit(X, y).release_.sha256 for _ in range(2)]
    assert found[0] == found[1]
    assert pipe.certificate_.status == "SEEDED"


def test_the_last_bits_of_a_sum_do_not_show_what_noise_was_added_to():
    """In float64, 1 + noise is a multiple of 2^-53 wherever it is small, and 0 + noise hardly ever is."""
    n, step = 60, Diffprivlib(models.GaussianNB(), (0, 1))
    domain = Domain(n_rows=n, n_features=1, row_norm=1.0, classes=(0, 1))
    y = np.arange(n) % 2.0

    def shares(first):
        """Of runs in which the sum of class 0 cannot have been 1."""
        rows = Rows.of(np.r_[first, np.zeros(n - 1)][:, None], y)
        found = [step.release(rows, step.query_spec(domain), Noise(), 0.3)["model"] for _ in range(100)]
        return np.mean([not could_be_one(run[0], run[4:], n + 3) for run in found])

    assert (shares(1.0), shares(0.0)) == (0.0, 0.0)


def could_be_one(mean, prior, most):
    """Whether a sum of 1 can lead to this mean, with any noise and any counts that give this prior."""
    counts = np.outer(np.arange(2, most), prior)
    counts = counts[np.abs(counts - np.rint(counts)).max(axis=1) < 1e-5, 0].round()
    sums = (np.rint(mean * counts * 2.0**53)[:, None] + np.arange(-2, 3)) * 2.0**-53
    means = sums / counts[:, None]
    return abs(mean) * counts.min() >= 0.5 or bool(((means == mean) | (means.astype(np.float32) == mean)).any())


def assert_law(numbers, cdf):
    """Told from the law that is expected only by a chance of one in a million."""
    assert stats.kstest(np.ravel(numbers), cdf).pvalue > 1e-6


def assert_nothing_shared(numbers):
    """Between the columns, released at once, or between runs."""
    assert len(np.unique(np.abs(numbers))) == numbers.size
    ranks = np.abs(np.corrcoef(stats.rankdata(numbers, axis=0), rowvar=False))
    assert (ranks - np.eye(len(ranks))).max() < SIGMAS / math.sqrt(len(numbers))


@pytest.mark.parametrize("penalty", [1.0, 0.01])
def test_noise_of_logistic_regression(penalty, monkeypatch):
    """On rows of zeros a coefficient vector is the linear term itself over the curvature."""
    monkeypatch.setattr(STEPS["LogisticRegression"].model, "C", 1 / penalty)
    scale, curvature = objective_noise(1 / 3, 1.0, penalty)
    noise = released("LogisticRegression", 30, runs=RUNS) * curvature / scale
    assert_nothing_shared(noise)
    vectors = noise.reshape(-1, 2)
    assert_law(np.linalg.norm(vectors, axis=1), stats.gamma(2).cdf)
    assert_law(np.arctan2(*vectors.T), stats.uniform(-math.pi, 2 * math.pi).cdf)


def test_noise_of_linear_regression():
    """Targets of zero: a coefficient is the noise on its product with the target, over half of the rows' weight."""
    n = 20_000
    noise = released("LinearRegression", n, runs=RUNS) * n / 2
    assert_nothing_shared(noise)
    assert_law(noise, stats.laplace(scale=2 * 6).cdf)


def test_noise_of_naive_bayes():
    """Sums of a class have two thirds of epsilon, for two columns; counts one third."""
    n, given = 6000, 1 / 6
    found = released("GaussianNB", n, runs=RUNS)
    counts = found[:, 12:] * n
    sums, squares = (part * np.repeat(counts, 2, axis=1) for part in (found[:, :6], found[:, 6:12]))
    assert_nothing_shared(np.hstack([sums, squares]))
    assert_law(sums, stats.laplace(scale=2 / given).cdf)
    bounded = LaplaceBoundedDomain(epsilon=given, sensitivity=1.0, lower=0.0, upper=n / 3)
    assert_law(squares, stats.expon(scale=bounded._find_scale()).cdf)
    between = counts[:, 0] - counts[:, 1]
    ratio = math.exp(-1 / 3)
    assert np.std(between) == pytest.approx(math.sqrt(4 * ratio) / (1 - ratio), rel=0.3)


# ---------------- the generator that it is handed


class ConstantTape(Noise):
    """Noise whose bits are chosen here."""

    def __init__(self, byte):
        super().__init__()
        self.byte, self.read = byte, 0

    def random_bytes(self, count):
        self.read += count
        return bytes([self.byte] * count)


LAWS = {
    "uniform": (Draws.random, stats.uniform()),
    "normal": (Draws.standard_normal, stats.norm()),
    **{f"gamma {a}": (partial(Draws.gamma, shape=a, scale=3.0), stats.gamma(a, scale=3)) for a in (0.25, 1.0, 2.75)},
}


@pytest.mark.parametrize("name", LAWS)
def test_its_numbers_have_the_law_that_they_are_asked_for(name):
    draw, law = LAWS[name]
    found = draw(Draws(Noise(0)), size=(2000, 2))
    assert found.shape == (2000, 2)
    assert stats.kstest(found.ravel(), law.cdf).pvalue > 0.01
    assert abs(stats.spearmanr(*found.T).statistic) < 4 / np.sqrt(2000)


def test_the_ends_of_a_gamma_variable_are_not_cut_off():
    """As Python's own sampler does where the shape is above 1."""
    smallest = Draws(ConstantTape(0)).gamma(2.0, 1.0, 1)
    largest = Draws(ConstantTape(255)).gamma(2.0, 1.0, 1)
    assert smallest[0] == 0
    assert largest[0] == pytest.approx(2 * 53 * np.log(2))


@pytest.mark.parametrize("size", [None, 3, (2, 2)])
def test_every_uniform_number_takes_fresh_bits(size):
    tape = ConstantTape(129)
    found = Draws(tape).random(size)
    assert np.shape(found) == np.shape(np.empty(() if size is None else size))
    assert 8 * tape.read >= 53 * np.size(found)


def test_a_seed_repeats_it_and_nothing_else_does():
    np.random.seed(0)  # noqa: NPY002
    one = Draws(Noise()).random(4)
    np.random.seed(0)  # noqa: NPY002
    assert not set(one) & set(Draws(Noise()).random(4))
    np.testing.assert_array_equal(Draws(Noise(7)).random(4), Draws(Noise(7)).random(4))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_cannot_be_copied(way):
    with pytest.raises(PpdpError, match="one process"):
        way(Draws(Noise()))


@pytest.mark.parametrize("name", ["randint", "uniform", "permutation", "laplace", "get_state", "_bit_generator"])
def test_it_draws_nothing_that_is_not_known_to_be_asked_for(name):
    with pytest.raises(AttributeError, match=f"draws by {name}"):
        getattr(Draws(Noise()), name)


def test_scikit_learn_takes_it_for_a_generator():
    draws = Draws(Noise())
    assert check_random_state(draws) is draws
