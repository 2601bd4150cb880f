"""Signs of a Gaussian matrix that is drawn with them: exact laws, pairs that turn furthest, and wrong mechanisms."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from effort import found, rounds
from scipy import special, stats

from ppdp import Distance, Domain, PrivacyLoss
from ppdp.bounds import lookup
from ppdp.data.rows import Rows
from ppdp.mechanisms import SignMechanism
from ppdp.privacy.losses import JointSigns, Part, RandomizedResponse
from ppdp.privacy.noise.sampler import Noise

DOMAIN = Domain(n_rows=6, n_features=3, row_norm=2.0)
PAIRS = {
    "replaced": (Distance(replaced=1), lambda u: (2 * u, -2 * u)),
    "toggled": (Distance(toggled=1), lambda u: (2 * u, 0 * u)),
    "moved": (Distance(moved=1, radius=0.5), lambda u: (0.25 * u, -0.25 * u)),
}


def certified(distance, *, k=5, floor=1.5, scale=1.0, domain=DOMAIN):
    return lookup("signs.angle", "privacy")(domain, distance, noise_scale=scale, n_signs=k, norm_floor=floor)


def angle(one, other, floor):
    one, other = np.append(one, floor), np.append(other, floor)
    return 2 * math.atan2(
        np.linalg.norm(one / np.linalg.norm(one) - other / np.linalg.norm(other)),
        np.linalg.norm(one / np.linalg.norm(one) + other / np.linalg.norm(other)),
    )


def of_symbols(q, eta, k, epsilon):
    """Delta over all outputs: of every row of the matrix it is public whether signs differ; then one of them lies."""
    p, delta = special.expit(eta), 0.0
    for output in itertools.product(((1 - q,) * 2, (q * p, q * (1 - p)), (q * (1 - p), q * p)), repeat=k):
        one, other = np.prod(output, axis=0)
        delta += max(one - math.exp(epsilon) * other, 0.0)
    return delta


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("k", [1, 4, 6])
@pytest.mark.repeated("k")
def test_delta_is_exactly_that_of_the_pair_that_turns_furthest(kind, k):
    distance, pair = PAIRS[kind]
    for scale, delta in ((0.3, 1e-2), (1.0, 1e-4), (2.0, 1e-3)):
        loss = certified(distance, k=k, scale=scale)
        q = angle(*pair(np.eye(3)[1]), 1.5) / math.pi
        epsilon = loss.epsilon(delta)
        assert of_symbols(q, 1 / scale, k, epsilon) <= delta
        assert epsilon < 1e-8 or of_symbols(q, 1 / scale, k, epsilon - 1e-6) > delta * found(1 - 1e-5)
        for at in (0.1, 1.0, 2.5):
            true = of_symbols(q, 1 / scale, k, at)
            assert true <= loss.delta(at) <= true * (1 + 1e-5) + 1e-8
    assert loss.epsilon(0.0) == pytest.approx(k / 2.0, rel=1e-7)  # given the matrix


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("floor", [0.1, 1.5, 40.0])
@pytest.mark.repeated("floor")
def test_no_pair_turns_further_and_climbing_comes_as_far(kind, floor):
    (distance, _), rng = PAIRS[kind], np.random.default_rng(0)
    (part,) = certified(distance, floor=floor).parts
    share, radius = part.share, distance.radius if kind == "moved" else 4.0

    def drawn(near, size):
        one, by = near[0] + size * rng.normal(size=3), near[1] + size * rng.normal(size=3)
        one *= min(1.0, 2 / np.linalg.norm(one))
        if kind == "toggled":
            return one, -one
        by *= min(1.0, radius / np.linalg.norm(by))
        other = one + by
        other *= min(1.0, 2 / np.linalg.norm(other))
        return one, other - one

    best, here = (np.zeros(3), np.zeros(3)), 0.0
    for size in [2.0] * rounds(50) + np.geomspace(1, 1e-7, rounds(400)).tolist():
        one, by = drawn(best, size)
        told = angle(one, one + by, floor) / math.pi
        assert told <= share
        if told > here:
            best, here = (one, by), told
    assert found(here / share) > 0.998


def released(X, mechanism, domain=DOMAIN, seed=0):
    question = mechanism.query_spec(domain)
    return mechanism.release(Rows.of(np.asarray(X, float)), question, Noise(seed), mechanism.noise_scale)


@pytest.mark.parametrize("kind", PAIRS)
def test_signs_of_drawn_matrices_differ_as_often_as_is_said(kind):
    """Of the matrix that the mechanism draws, and of the numbers that it computes."""
    distance, pair = PAIRS[kind]
    k = 20_000
    (part,) = certified(distance, k=k).parts
    X = np.zeros((6, 3))
    X[0], X[1] = pair(np.ones(3) / math.sqrt(3))
    found_ = released(X, SignMechanism("angle", 1e-9, n_signs=k, norm_floor=1.5))
    matrix, U = found_["matrix"], np.column_stack([X[:2], [1.5, 1.5]])
    assert matrix.shape == (k, 4)
    images = U @ matrix.T
    differ = int((np.sign(images[0]) != np.sign(images[1])).sum())
    assert stats.binomtest(differ, k, part.share).pvalue > 1e-6
    assert stats.binomtest(differ, k, 0.9 * part.share).pvalue < 1e-6
    signs = found_["answer"].reshape(6, k)
    assert (signs[:2] != np.sign(images)).mean() < 1e-5  # no flips, but for the floor
    np.testing.assert_allclose(np.abs(matrix).mean(), math.sqrt(2 / math.pi), rtol=0.02)


def test_equal_rows_have_equal_images_wherever_they_stand():
    rng, mechanism = np.random.default_rng(0), SignMechanism("angle", 1.0, n_signs=7, norm_floor=1.0)
    X = rng.uniform(-1, 1, (5000, 3))
    mechanism.read({**released(X[:6], mechanism)}, DOMAIN, None)
    images = mechanism.queries(X)
    order = rng.permutation(5000)
    np.testing.assert_array_equal(mechanism.queries(X[order]), images[order])
    np.testing.assert_array_equal(mechanism.queries(X[17:19]), images[17:19])


def test_several_rows_share_a_matrix_so_their_signs_may_change_together():
    """What is charged is at least as much as any way in which the signs of two rows can change at once."""
    q, p, k = math.atan(2 / 1.5) / math.pi, special.expit(1.0), 3
    loss, delta = certified(Distance(toggled=2), k=k), 1e-2
    epsilon = loss.epsilon(delta)
    lies = {0: [(1.0, 1.0)], 1: [(p, 1 - p), (1 - p, p)]}
    lies[2] = [(a * b, c * d) for a, c in lies[1] for b, d in lies[1]]
    for together in ((1 - q, 0.0, q), (1 - 2 * q, 2 * q, 0.0), ((1 - q) ** 2, 2 * q * (1 - q), q**2)):
        if min(together) < 0:
            continue
        symbols = [(w * a, w * b) for w, rows in zip(together, lies.values()) for a, b in rows]
        true = sum(
            max(math.prod(a for a, _ in out) - math.exp(epsilon) * math.prod(b for _, b in out), 0.0)
            for out in itertools.product(symbols, repeat=k)
        )
        assert true <= delta
    assert certified(Distance(replaced=3), k=k, floor=0.5).parts[0].share == 1.0


class TestMutants:
    """Forms that look alike and are not private: each needs more than it would claim."""

    K, SCALE, DELTA = 64, 1.0, 1e-6
    MOVED = Distance(moved=1, radius=0.5)

    def epsilon(self):
        return certified(self.MOVED, k=self.K, scale=self.SCALE).epsilon(self.DELTA)

    def test_a_matrix_that_is_known_before_the_rows(self):
        """As from a seed: a pair on both sides of its null space changes all signs."""
        d = self.K + 8
        matrix = np.random.default_rng(0).normal(size=(self.K, d + 1))
        null = np.linalg.svd(matrix)[2][-8:]
        u = null[np.abs(null[:, -1]).argmax()]
        u *= 1.5 / u[-1]
        by = np.linalg.pinv(matrix[:, :-1]) @ np.ones(self.K)
        by *= 0.25 / np.linalg.norm(by)
        images = [matrix @ np.append(u[:-1] + side * by, 1.5) for side in (1, -1)]
        assert (np.sign(images[0]) != np.sign(images[1])).all()
        given = PrivacyLoss(parts=(RandomizedResponse(count=self.K, epsilon=1 / self.SCALE),))
        assert given.delta(self.epsilon()) > 1e3 * self.DELTA

    def test_no_floor(self):
        """Short rows turn by any angle."""
        opposite = PrivacyLoss(parts=(JointSigns(count=self.K, epsilon=1.0, share=1.0, signs=1),))
        assert angle(1e-9 * np.ones(3), -1e-9 * np.ones(3), 0.0) == pytest.approx(math.pi)
        assert opposite.delta(self.epsilon()) > 1e3 * self.DELTA

    @pytest.mark.parametrize("share", [0.5, 0.9])
    def test_a_smaller_share(self, share):
        (part,) = certified(self.MOVED, k=self.K, scale=self.SCALE).parts
        wrong = PrivacyLoss(parts=(replace(part, share=share * part.share),)).epsilon(self.DELTA)
        assert PrivacyLoss(parts=(part,)).delta(wrong) > 1.1 * self.DELTA

    def test_one_row_of_several(self):
        (part,) = certified(Distance(moved=2, radius=0.5), k=self.K, scale=self.SCALE).parts
        assert part.signs == 2
        assert PrivacyLoss(parts=(part,)).delta(self.epsilon()) > 1e3 * self.DELTA


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
@pytest.mark.parametrize(("signs", "count"), [(1, 64), (3, 9)])
def test_the_part_agrees_with_itself(share, signs, count):
    part = JointSigns(count=count, epsilon=0.4, share=share, signs=signs)
    assert Part.from_dict(part.to_dict()) == part
    assert "delta is over the joint draw" in part.words()
    loss, given = (PrivacyLoss(parts=(one,)) for one in (part, RandomizedResponse(count=count * signs, epsilon=0.4)))
    assert loss.epsilon(0.0) == pytest.approx(given.epsilon(0.0))
    for delta in (1e-9, 1e-4):
        epsilon = loss.epsilon(delta)
        assert epsilon <= given.epsilon(delta) + 1e-8
        assert loss.delta(epsilon) <= delta * (1 + 1e-6)
        assert loss.delta(epsilon) > 0.98 * delta or epsilon < 1e-8
        together = PrivacyLoss(parts=(part, part)).epsilon(delta)
        assert epsilon <= together <= 2 * epsilon + 0.2
    for order in (1.01, 2.0, 50.0):
        p, q = special.expit(0.4), special.expit(-0.4)
        one = (p**order * q ** (1 - order) + q**order * p ** (1 - order)) ** signs
        true = count * math.log1p(share * (one - 1)) / (order - 1)
        assert loss.renyi(order) == pytest.approx(true, rel=1e-8, abs=1e-11)


def test_more_signs_than_are_tabulated_cost_what_they_cost_given_the_matrix():
    part = JointSigns(count=5000, epsilon=1e-3, share=0.3, signs=1)
    given = RandomizedResponse(count=5000, epsilon=1e-3)
    assert PrivacyLoss(parts=(part,)).epsilon(1e-6) <= PrivacyLoss(parts=(given,)).epsilon(1e-6)
