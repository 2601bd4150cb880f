"""Signs flipped at random: every output of every pair is enumerated, and wrong mechanisms are found."""

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from effort import found, rounds
from scipy import special, stats

from ppdp import Adjacency, Distance, Domain, PrivacyLoss
from ppdp.bounds import lookup
from ppdp.bounds.projection import Matrix
from ppdp.bounds.signs import LEAST_FLIP
from ppdp.core.distance import Moves
from ppdp.data.exact_matmul import project
from ppdp.mechanisms import SignMechanism
from ppdp.privacy.losses import GaussianSigns, LaplaceSigns, Part, RandomizedResponse
from ppdp.privacy.losses.signs import gaussian_sign_renyi, response_curve, response_epsilon

PURE = ("staircase", "smooth", "randomized-response", "laplace")
STEPPED = ("staircase", "smooth")
FAMILIES = ("gaussian", "uniform", "rademacher", "sparse", "oporp")
EXCESS = 1 + 1e-9


def kept(mechanism, values):
    """Probability of +1 for each number, as the mechanism says it."""
    values = np.asarray(values, float)
    flipped = mechanism.flip_probability(values)
    return np.where(values < 0, flipped, 1 - flipped)


@cache
def all_bits(k):
    return np.array(list(itertools.product([False, True], repeat=k)))


def outputs(p):
    """Logarithms of the probabilities of all 2^k outputs."""
    with np.errstate(divide="ignore"):
        return np.where(all_bits(len(p)), np.log(p), np.log1p(-p)).sum(axis=1)


def worst(mechanism, one, other):
    """Largest privacy loss of any of the outputs, both ways round."""
    return float(np.abs(outputs(kept(mechanism, one)) - outputs(kept(mechanism, other))).max())


def hockey_stick(p, q, epsilon):
    one, other = np.exp(outputs(p)), np.exp(outputs(q))
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) for a, b in ((one, other), (other, one)))


def certified(flips, domain, distance, scale, unit=None):
    """A mechanism with its parameters set, and its loss."""
    mechanism = SignMechanism(flips, scale, unit=unit)
    question = mechanism.query_spec_at(domain, distance)
    mechanism.settle(question)
    return mechanism, question.privacy_map(domain, distance, scale)


def moved(k, linf, columns):
    radius = linf * math.sqrt(columns)
    return Distance(moved=1, radius=radius).moving(Moves(linf, linf * columns, columns))


def numbers(rng, k, step):
    """Numbers in [-1, 1]: anything, multiples of a step with zeros, or very small."""
    kind = rng.integers(3)
    if kind == 0:
        return rng.uniform(-1, 1, k)
    if kind == 1:
        return np.clip(step * rng.integers(-4, 5, k), -1, 1)
    return rng.choice([-1.0, 1.0], k) * step * 10.0 ** -rng.integers(1, 12, k)


def changed(rng, x, step, columns):
    """The same with up to so many of them changed by at most a step."""
    other = x.copy()
    where = rng.permutation(len(x))[:columns]
    by = rng.choice([-1.0, -1.0 + 1e-12, 0.5, 1.0, rng.uniform(-1, 1)], len(where)) * step
    other[where] = np.clip(x[where] + by, -1, 1)
    if rng.integers(3) == 0:  # to the other side of 0
        other[where] = np.where(np.abs(2 * x[where]) <= step, -x[where], other[where])
    return other


@pytest.mark.parametrize("flips", PURE)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.repeated("epsilon", keep=2)
def test_no_output_tells_more_than_is_certified(flips, epsilon):
    rng = np.random.default_rng(0)
    closest = 0.0
    for _ in range(rounds(60)):
        k = int(rng.integers(1, 8))
        columns, step = int(rng.integers(1, k + 1)), float(rng.choice([0.125, 0.1, 0.3, 1.0, 2.0]))
        domain = Domain(n_rows=5, n_features=k, row_norm=math.sqrt(k), entry_bound=1.0)
        distance = moved(k, step, columns)
        scale = (step if flips == "laplace" else 1.0) * columns / epsilon
        mechanism, loss = certified(flips, domain, distance, scale)
        bound = loss.epsilon(0.0)
        for _ in range(6):
            x = numbers(rng, k, step)
            told = worst(mechanism, x, changed(rng, x, step, columns))
            assert told <= bound * EXCESS
            closest = max(closest, told / bound)
    assert found(closest) > 1 - 1e-6


@pytest.mark.parametrize("flips", PURE)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("adjacency", [{"coordinate": 0.25}, {"coordinate": 0.5, "count": 2}, {"l1": 0.3}, {"l2": 0.3}])
@pytest.mark.repeated("adjacency")
def test_behind_drawn_matrices(flips, family, adjacency):
    """Rows of p numbers, k components, the matrix that was drawn; also pairs on both sides of its null space."""
    rng = np.random.default_rng(1)
    p, k = 6, 5
    change = Adjacency.change(**adjacency)
    box = Domain(n_rows=3, n_features=p, row_norm=math.sqrt(p), entry_bound=1.0)
    for seed in range(rounds(2)):
        drawn = {"family": family, "n_components": k, "seed": seed}
        A = Matrix(n_features=p, **drawn).entries
        domain, distance = lookup("projection.drawn", "stability")(box, change.entrance_distance(p), **drawn)
        mechanism, loss = certified(flips, domain, distance, 0.7)
        null = np.linalg.svd(A.toarray() if hasattr(A, "toarray") else A)[2][-1]
        for _ in range(12):
            x = rng.uniform(-1, 1, p) if rng.integers(2) else null / np.abs(null).max()
            by = step_within(rng, p, **adjacency)
            if rng.integers(2):
                x, by = x - by / 2, by
            one, other = np.clip(x, -1, 1), np.clip(x + by, -1, 1)
            images = [project(row[None, :], A)[0] for row in (one, other)]
            assert worst(mechanism, *images) <= loss.epsilon(0.0) * EXCESS


def step_within(rng, p, *, coordinate=None, count=1, l1=None, l2=None):
    by = np.zeros(p)
    if coordinate is not None:
        by[rng.permutation(p)[:count]] = coordinate * rng.choice([-1.0, 1.0], count)
        return by
    direction = rng.normal(size=p) * (rng.random(p) < rng.choice([0.2, 1.0]))
    direction[rng.integers(p)] += 1e-3
    size = np.abs(direction).sum() if l1 is not None else np.linalg.norm(direction)
    return direction * (l1 or l2) / size * (1 - 1e-12)


@pytest.mark.parametrize("flips", PURE)
@pytest.mark.parametrize(
    "distance",
    [
        Distance(replaced=1),
        Distance(toggled=1),
        Distance(replaced=1, toggled=1, moved=2, radius=0.1),
        Distance(moved=3, radius=0.05, total=0.1),
        Distance(reweighted=1, mass=0.5, one_sided=0.5),
        Distance(replaced=1, reordered=1),
    ],
    ids=Distance.describe,
)
@pytest.mark.parametrize("unit", [None, 0.3, 5.0])
@pytest.mark.repeated("unit")
def test_rows_that_are_replaced_toggled_moved_and_reweighted(flips, distance, unit):
    """All entries of all slots that differ, with their weights; a unit of the user's may be anything."""
    rng = np.random.default_rng(2)
    domain = Domain(n_rows=6, n_features=2, row_norm=1.5, entry_bound=1.0)
    mechanism, loss = certified(flips, domain, distance, 1.3, unit if flips in STEPPED else None)
    far, bound, closest = distance.by_position(), loss.epsilon(0.0), 0.0
    for _ in range(rounds(40)):
        told = 0.0
        for kind, slots in (("replaced", 1), ("toggled", 1), ("moved", 1), ("reweighted", 1)):
            for _ in range(int(getattr(far, kind)) * slots):
                x = rng.choice([1.0, 1e-9, rng.random()], 2) * rng.choice([-1.0, 1.0], 2)
                other = {
                    "replaced": -x if rng.integers(2) else rng.uniform(-1, 1, 2),
                    "toggled": np.zeros(2),
                    "moved": x + rng.choice([-1.0, 1.0], 2) * min(far.radius, far.total / max(far.moved, 1)) / 2**0.5,
                    "reweighted": x * (1 - distance.mass),
                }[kind]
                told += worst(mechanism, x, np.clip(other, -1, 1))
        closest = max(closest, told / bound)
        assert told <= bound * EXCESS
    if unit is None and flips != "laplace" and distance in (Distance(replaced=1), Distance(toggled=1)):
        assert found(closest) > 1 - 1e-6


@pytest.mark.parametrize("flips", PURE)
def test_climbing_comes_to_what_is_certified_and_no_further(flips):
    """From random pairs of one number to better ones, under a bound on one coordinate."""
    rng = np.random.default_rng(3)
    domain, step = Domain(n_rows=2, n_features=1, row_norm=1.0), 0.2
    mechanism, loss = certified(flips, domain, moved(1, step, 1), step if flips == "laplace" else 1.0)
    bound, best = loss.epsilon(0.0), 0.0
    for _ in range(4):
        x, by = rng.uniform(-1, 1), rng.uniform(-step, step)
        here = worst(mechanism, [x], [np.clip(x + by, -1, 1)])
        for size in np.geomspace(1, 1e-9, rounds(120)):
            near, change = np.clip(x + size * rng.normal(), -1, 1), np.clip(by + size * rng.normal(), -step, step)
            told = worst(mechanism, [near], [np.clip(near + change, -1, 1)])
            if told > here:
                x, by, here = near, change, told
        best = max(best, here)
    assert best <= bound * EXCESS
    assert found(best / bound) > 1 - 1e-6


class TestMutants:
    """What others have written, or could: each exceeds what its formula says on some pair."""

    STEP, SCALE = 0.1, 1.0
    PAIRS = (
        ([0.05], [-0.05]),
        ([0.0], [0.1]),
        ([0.0], [-0.1]),
        ([0.0], [1e-9]),
        ([0.1], [0.2]),
        ([0.15], [0.25]),
        ([0.3], [0.3999999]),
        ([0.05], [0.1500001]),
        ([0.8 - 0.9 - 0.7], [0.8 - 0.8 - 0.7]),  # -0.8 and -0.7, of which floats make 8 and 6 steps or so
        ([4.4], [4.3000000000000004]),
        ([4.4000000000000004], [4.299999999999999]),
        ([0.05, 0.05, 0.05], [-0.05, -0.05, -0.05]),
        ([1e-3, 0.0], [-1e-3, 0.0]),
    )

    def largest(self, flip, count=1):
        """Largest loss over the pairs of so many numbers."""
        most = 0.0
        for one, other in self.PAIRS:
            if len(one) != count:
                continue
            p, q = (np.where(np.asarray(x) < 0, flip(np.abs(x)), 1 - flip(np.abs(x))) for x in (one, other))
            with np.errstate(all="ignore"):
                most = max(most, np.abs(outputs(p) - outputs(q)).max())
        return most

    def eta(self, count=1):
        domain = Domain(n_rows=2, n_features=count, row_norm=5.0 * math.sqrt(count), entry_bound=5.0)
        _, loss = certified("staircase", domain, moved(count, self.STEP, count), self.SCALE)
        return loss.epsilon(0.0)

    @pytest.mark.parametrize(
        "flip",
        [
            pytest.param(lambda a: np.where(a == 0, 1.0, 1 / (1 + np.exp(np.floor(a / 0.1) + 1))), id="0 is minus"),
            pytest.param(lambda a: special.expit(-(np.floor(a / 0.1) + 1)), id="levels by floors"),
            pytest.param(lambda a: np.where(a > 0.05, 0.0, special.expit(-1.0)), id="exact signs far from 0"),
            pytest.param(lambda a: 1 - special.expit(40 * np.maximum(np.ceil(a / 0.1), 1)), id="no floor"),
            pytest.param(lambda a: special.expit(-np.ceil(a / 0.05)), id="half of the unit"),
            pytest.param(lambda a: np.exp(-np.ceil(a / 0.1)) / (1 + math.e), id="a stair too high"),
            pytest.param(lambda a: special.expit(-2 * np.maximum(np.ceil(a / 0.1), 1)), id="twice eta"),
            pytest.param(lambda a: np.exp(-np.abs(a) / 0.05) / 2, id="half of the Laplace scale"),
        ],
    )
    def test_of_one_number(self, flip):
        assert self.largest(flip) > self.eta() * EXCESS

    def test_one_budget_for_several_numbers(self):
        assert self.largest(lambda a: special.expit(-np.ceil(a / 0.1)), 3) > self.eta(1) * 2.9
        assert self.largest(lambda a: special.expit(-np.ceil(a / 0.1)), 3) <= self.eta(3) * EXCESS

    def test_levels_that_rounding_makes_two_steps_apart(self):
        """Without a guard band two numbers that are one step apart come to be two steps apart."""
        rng = np.random.default_rng(4)
        grid = rng.integers(-40, 40, 20_000) / 10.0
        one, other = grid + 0.3 - 0.1, grid + 0.3 - 0.2  # floats err on the way
        naive = [np.sign(x) * np.ceil(np.abs(x) / 0.1) for x in (one, other)]
        same_side = naive[0] * naive[1] > 0
        assert (np.abs(naive[0] - naive[1])[same_side] > 1).any()
        domain = Domain(n_rows=2, n_features=1, row_norm=5.0)
        apart = float(np.abs(one - other).max())
        mechanism, loss = certified("staircase", domain, moved(1, apart, 1), 1.0)
        p, q = kept(mechanism, one), kept(mechanism, other)
        told = np.maximum(np.abs(np.log(p / q)), np.abs(np.log((1 - p) / (1 - q))))
        assert told.max() <= loss.epsilon(0.0) * EXCESS

    def test_the_normal_approximation_for_signs_of_rademacher_matrices(self):
        """Half of the signs change, not the few that two close rows are said to change; so delta is 0.01, not 1e-6."""
        k, said, epsilon = 256, 21, 1.0
        flips = epsilon / said
        delta = 0.0
        for changes in range(said + 1, k + 1):
            lies = np.arange(changes + 1)
            told = np.maximum(-np.expm1(epsilon - (changes - 2 * lies) * flips), 0.0)
            delta += stats.binom.pmf(changes, k, 0.5) * (told @ stats.binom.pmf(lies, changes, special.expit(-flips)))
        assert delta > 1e-3


class TestTogether:
    @pytest.mark.parametrize("flips", ["staircase", "smooth", "randomized-response", "laplace"])
    @pytest.mark.parametrize("k", [1, 3, 7])
    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    @pytest.mark.repeated("k", "epsilon", keep=2)
    def test_delta_is_that_of_the_product(self, flips, k, epsilon):
        """By enumeration, attained where all signs are opposite."""
        rng = np.random.default_rng(5)
        domain = Domain(n_rows=2, n_features=k, row_norm=math.sqrt(k), entry_bound=1.0)
        distance = moved(k, 0.2, k)
        budget = PrivacyLoss(parts=(RandomizedResponse(epsilon=epsilon),))
        mechanism = SignMechanism(flips).calibrate(domain, distance, budget, delta=1e-3)
        loss = mechanism.privacy_map(domain, distance)
        target = loss.epsilon(1e-3)
        assert 0.99 * budget.epsilon(1e-3) < target <= budget.epsilon(1e-3)
        most = 0.0
        for _ in range(rounds(20)):
            x = numbers(rng, k, 0.2)
            p, q = (kept(mechanism, row) for row in (x, changed(rng, x, 0.2, k)))
            most = max(most, hockey_stick(p, q, target))
        for one, other in ((0.1, -0.1), (0.0, 0.2), (-1.0, -0.8)):
            p, q = (kept(mechanism, np.full(k, x)) for x in (one, other))
            most = max(most, hockey_stick(p, q, target))
        assert most <= 1e-3
        assert found(most / 1e-3) > (0.3 if flips == "laplace" else 0.97)

    @pytest.mark.parametrize(("count", "each"), [(7, 0.3), (64, 0.1321), (256, 0.1167), (1000, 0.01), (5, 3.0)])
    def test_epsilon_of_many_answers(self, count, each):
        lies = np.arange(count + 1)
        p = stats.binom.pmf(lies, count, special.expit(-each))
        for delta in (1e-3, 1e-6, 1e-12):
            epsilon = response_epsilon(each, count, delta)
            losses = (count - 2 * lies) * each
            true = np.maximum(-np.expm1(epsilon - losses), 0.0) @ p
            assert true <= delta * (1 + 1e-6)
            if epsilon:
                assert np.maximum(-np.expm1(epsilon - 1e-6 - losses), 0.0) @ p > delta * (1 - 1e-4)
        loss = PrivacyLoss(parts=(RandomizedResponse(count=count, epsilon=each),))
        assert loss.epsilon(1e-6) == pytest.approx(response_epsilon(each, count, 1e-6), rel=1e-9)
        assert 1e-6 * 0.99 <= loss.delta(loss.epsilon(1e-6)) <= 1e-6

    @pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 8.0, 900.0])
    @pytest.mark.parametrize("order", [1.001, 2.0, 64.0])
    def test_the_curve_is_that_of_randomised_response(self, epsilon, order):
        p, q = special.log_expit(epsilon), special.log_expit(-epsilon)
        true = np.logaddexp(order * p + (1 - order) * q, order * q + (1 - order) * p) / (order - 1)
        assert response_curve(epsilon)(order) == pytest.approx(true, rel=1e-9, abs=1e-12 / (order - 1))


class TestGaussianSigns:
    @pytest.mark.parametrize("order", [1.05, 2.0, 7.5, 60.0])
    @pytest.mark.parametrize("shift", [0.01, 0.05, 0.5, 2.0])
    @pytest.mark.repeated("shift", keep=2)
    def test_the_supremum_is_above_every_pair_and_close(self, order, shift):
        t = np.concatenate([np.linspace(-order * shift - 12, order * shift + 12, 40_001), np.linspace(-2, 2, 4001)])
        p, q, lack_p, lack_q = (
            special.log_ndtr(z) for z in (t + shift / 2, t - shift / 2, -t - shift / 2, shift / 2 - t)
        )
        both = np.logaddexp(order * p + (1 - order) * q, order * lack_p + (1 - order) * lack_q)
        true = both.max() / (order - 1)
        bound = gaussian_sign_renyi(order, shift)
        assert true <= bound <= true * 1.012 + 1e-9
        assert true < order * shift**2 / 2

    @pytest.mark.parametrize(("k", "gain"), [(1, 1.0), (8, 0.91), (64, 0.88)])
    def test_never_worse_than_the_numbers_themselves(self, k, gain):
        domain = Domain(n_rows=3, n_features=k, row_norm=math.sqrt(k), entry_bound=1.0)
        distance, budget = moved(k, 0.125, k), PrivacyLoss(1.0)
        own = SignMechanism("gaussian").calibrate(domain, distance, budget).noise_scale
        numbers_themselves = 0.125 * math.sqrt(k) / 1.0
        assert own <= numbers_themselves * gain * (1 + 2e-3)

    @pytest.mark.repeated("epsilon")
    @pytest.mark.parametrize("k", [3, 40])
    @pytest.mark.parametrize("epsilon", [1.0, 6.0])
    def test_delta_of_common_shifts(self, k, epsilon):
        """All k numbers at one place, all moved alike: the number of pluses decides."""
        domain = Domain(n_rows=3, n_features=k, row_norm=9 * math.sqrt(k), entry_bound=9.0)
        distance, delta = moved(k, 0.1, k), 1e-6
        target = PrivacyLoss(parts=(RandomizedResponse(epsilon=epsilon),))
        mechanism = SignMechanism("gaussian").calibrate(domain, distance, target, delta=delta)
        target = target.epsilon(delta)
        worst_delta = 0.0
        for x in np.linspace(-8, 8, 161):
            p, q = kept(mechanism, [x, x + 0.1])
            one, other = (stats.binom.logpmf(np.arange(k + 1), k, each) for each in (p, q))
            for a, b in ((one, other), (other, one)):
                worst_delta = max(worst_delta, np.maximum(np.exp(a) - np.exp(target + b), 0.0).sum())
        assert worst_delta <= delta
        assert found(worst_delta / delta) > (0.02 if k >= 40 else 0)


def test_a_floor_under_flips_is_a_post_processing():
    """The clipped pair of coins lies in the region of the original pair, so no event tells more."""
    rng = np.random.default_rng(6)
    p, q = np.sort(rng.beta(0.2, 0.2, (2, 5000)), axis=0)[::-1]
    a, b = (np.clip(x, 1e-2, 1 - 1e-2) for x in (p, q))
    for ratio in np.exp([0.0, 0.5, 3.0, 10.0]):
        for x, y, clipped, other in ((p, q, a, b), (q, p, b, a)):
            before, after = (
                np.maximum(np.maximum(u - ratio * v, (1 - u) - ratio * (1 - v)), 0.0)
                for u, v in ((x, y), (clipped, other))
            )
            assert (after <= before + 1e-12).all()


@pytest.mark.parametrize("flips", [*PURE, "gaussian"])
def test_no_flip_is_rarer_than_the_floor(flips):
    mechanism = SignMechanism(flips, 1e-3, unit=1e-3)
    assert mechanism.flip_probability([1.0, 1e300, -1.0]).min() == LEAST_FLIP


@pytest.mark.parametrize(
    "part",
    [
        RandomizedResponse(epsilon=0.1, count=5),
        LaplaceSigns(epsilon=0.2, numbers=9, shift=1.5),
        LaplaceSigns(epsilon=0.02, numbers=400, shift=7.5),
        GaussianSigns(mu=0.4, numbers=16, shift=0.1),
    ],
    ids=Part.describe,
)
def test_parts_are_recorded_told_and_repeated(part):
    assert Part.from_dict(part.to_dict()) == part
    assert "random bits" in part.words() or "signs of numbers" in part.words()
    one, four = (PrivacyLoss(parts=(replace(part, count=times * part.count),)) for times in (1, 4))
    assert one * 4 == four
    for delta in (1e-9, 1e-5):
        assert one.epsilon(delta) < four.epsilon(delta) <= 4 * one.epsilon(0.0)
        assert four.epsilon(delta) <= PrivacyLoss(1e-9, parts=four.parts).epsilon(delta) * (1 + 1e-6)
    assert one.renyi(3.0) * 4 == pytest.approx(four.renyi(3.0), rel=1e-9)


def test_more_answers_than_are_tabulated():
    count = 2**20 + 1
    loss = PrivacyLoss(parts=(RandomizedResponse(epsilon=1e-4, count=count),))
    assert (
        response_epsilon(1e-4, count - 1, 1e-6) <= loss.epsilon(1e-6) <= 1.02 * response_epsilon(1e-4, count - 1, 1e-6)
    )
