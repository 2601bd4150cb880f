"""The paper on random and sign projections: its data are neighbours, and what is called true there is attacked."""

import math

import numpy as np
import pytest

from literature import claim, claims
from literature.projections import PAPER
from literature.projections.estimates import angle_variance, binned, oporp_images, projected, raw, sign_images, variance
from literature.projections.individual import excluded, mask, response_signs
from literature.projections.joint import count, flat_pair, independent, normal_share, two_entries
from literature.projections.laws import angle, composed_delta, gaussian_delta, joint_delta, loss, needed_delta, smooth
from literature.projections.noise import dwork_roth, kenthapadi
from literature.projections.normals import moment, probability
from ppdp.privacy.gaussian import gaussian_mu

OURS = [found for found in claims() if found.paper == PAPER]
ADVERSARIES = {}


def against(name):
    def register(function):
        ADVERSARIES[name] = function
        return function

    return register


def neighbours(rng, p, beta):
    """Records of the box, one coordinate at most β apart; often at its ends."""
    left = np.clip(rng.uniform(-1, 1, p) * rng.choice([1.0, 3.0]), -1, 1)
    right, column = left.copy(), rng.integers(p)
    right[column] = np.clip(left[column] + beta * rng.choice([-1, 1]) * rng.choice([1.0, rng.random()]), -1, 1)
    return left, right


def signs(rng, shape):
    return 1.0 - 2.0 * rng.integers(0, 2, shape)


@against("sign-thm-3.2")
def noise_of_any_size(rng, bound):
    epsilon, delta = 10 ** rng.uniform(-2, 1.5), 10 ** rng.uniform(-9, -1)
    yield gaussian_delta(rng.uniform(0.5, 1), 1 / gaussian_mu(epsilon, delta), epsilon) / bound(delta=delta)


@against("sign-eq-3")
def any_matrix(rng, bound):
    beta, W = rng.uniform(0.1, 2), rng.standard_normal((5, 3)) * rng.uniform(0, 1, (5, 1))
    left, right = neighbours(rng, 5, beta)
    yield np.linalg.norm((left - right) @ W) / math.sqrt(3) / bound(beta=beta, norms=np.linalg.norm(W, axis=1), k=3)


@against("sign-b1")
def any_signs(rng, bound):
    beta = rng.uniform(0.1, 2)
    left, right = neighbours(rng, 5, beta)
    yield np.linalg.norm((left - right) @ signs(rng, (5, 3))) / math.sqrt(3) / bound(beta=beta)


@against("sign-alg-10")
def any_bins(rng, bound):
    beta = rng.uniform(0.1, 2)
    left, right = neighbours(rng, 5, beta)
    yield np.abs(((left - right) * signs(rng, 5)) @ np.eye(3)[rng.integers(0, 3, 5)]).sum() / bound(beta=beta)


@against("sign-thm-4.5")
def any_angle(rng, bound):
    theta, epsilon = rng.uniform(0, math.pi), rng.uniform(0.1, 5)
    yield angle_variance(theta, epsilon) / bound(theta=theta, epsilon=epsilon)


@against("sign-thm-c1")
def raw_records(rng, bound):
    u, v, sigma = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2), rng.uniform(0.1, 2)
    yield variance(np.vstack([u, v])[None], sigma) / bound(u=u, v=v, sigma=sigma)


@against("sign-thm-c2")
def projected_records(rng, bound):
    u, v, sigma = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3), rng.uniform(0.1, 2)
    yield variance(sign_images(np.vstack([u, v]), 2), sigma) / bound(u=u, v=v, sigma=sigma, k=2)


@against("sign-eq-16")
def gains(rng, bound):
    p, k, sigma = int(rng.integers(10, 1000)), int(rng.integers(1, 10)), 10 ** rng.uniform(-2, 3)
    u = rng.standard_normal(p)
    u /= np.linalg.norm(u)
    yield raw(u=u, v=u, sigma=sigma) / projected(u=u, v=u, sigma=sigma, k=k) / bound(p=p, k=k)


@against("sign-lemma-e1-probability")
def pairs_of_normals(rng, bound):
    r, rho = rng.uniform(0.1, 3), rng.uniform(-0.95, 0.95)
    yield probability(r, rho) / bound(r=r, rho=rho)


@against("sign-lemma-e1-expectation")
def larger_normals(rng, bound):
    r, rho = rng.uniform(0.1, 3), rng.uniform(-0.95, 0.95)
    yield moment(lambda x: x, r, rho) / probability(r, rho) / bound(r=r, rho=rho)


@against("sign-lemma-e1-tail")
def tails_of_normals(rng, bound):
    r, rho, t = rng.uniform(0.01, 3), rng.uniform(-0.95, 0.95), rng.uniform(0.1, 4)
    yield probability(r, rho, t) / probability(r, rho) / bound(t=t)


@against("sign-prop-4.4-l1")
def spread_changes(rng, bound):
    w, change = rng.standard_normal(4), rng.dirichlet(np.full(4, rng.choice([0.05, 1.0]))) * signs(rng, 4)
    beta = rng.uniform(0.1, 2)
    yield abs(w @ change) * beta / bound(beta=beta, largest=np.abs(w).max())


@against("sign-alg-3")
def fixed_pairs(rng, bound):
    """The largest angle that norms allow; δ up to 0.9, where N₊ is least."""
    p, k, r = int(rng.integers(2, 5)), int(rng.integers(2, 30)), rng.uniform(0.05, 1)
    delta, epsilon = rng.uniform(0.01, 0.9), rng.uniform(0.1, 20)
    q = 2 / math.pi * math.asin(r / 2)
    assert q <= independent(p=p, r=r)
    yield joint_delta(k, q, epsilon / count(independent(p=p, r=r), k, delta), epsilon) / bound(delta=delta)


@against("sign-thm-4.6")
def dense_signs(rng, bound):
    beta, epsilon, k = rng.choice([0.5, 1.0, 2.0]), rng.choice([0.1, 1.0]), int(rng.integers(1, 6))
    W = signs(rng, (3, k))
    left, right = (np.rint(8 * u) / 8 for u in neighbours(rng, 3, beta))  # on a lattice: exact multiples and zeros
    one, other = (smooth(u @ W, beta, epsilon / k) for u in (left, right))
    yield loss(one, other) / bound(epsilon=epsilon)


@against("sign-section-4.3")
def binned_signs(rng, bound):
    beta, epsilon, k = rng.choice([0.5, 1.0, 2.0]), rng.choice([0.1, 1.0]), int(rng.integers(1, 4))
    sign, places = signs(rng, 5), np.eye(k)[rng.integers(0, k, 5)]
    left, right = (np.rint(8 * u) / 8 for u in neighbours(rng, 5, beta))
    one, other = (smooth((u * sign) @ places, beta, epsilon) for u in (left, right))
    yield loss(one, other) / bound(epsilon=epsilon)


@against("sign-a-sensitivity")
def any_record(rng, bound):
    """The largest change there is over that of a neighbour of some u, which can go β one way."""
    beta, u = rng.uniform(0.1, 1), rng.uniform(-1, 1, 4)
    farthest = np.minimum(beta, np.maximum(1 - u, u + 1)).max()
    yield bound(beta=beta) / farthest


@against("sign-alg-7")
def signs_that_differ(rng, bound):
    beta, W = rng.uniform(0.1, 2), signs(rng, (4, 6))
    left, right = neighbours(rng, 4, beta)
    noisy = int(mask(left @ W, beta).sum())
    if noisy:
        yield ((left @ W > 0) != (right @ W > 0)).sum() / bound(noisy=noisy)


TRUE = [found.id for found in OURS if found.status in ("holds", "loose")]


@pytest.mark.parametrize("name", TRUE)
def test_no_draw_exceeds_a_claim_that_is_true(name):
    rng = np.random.default_rng(0)
    shares = [share for _ in range(60) for share in ADVERSARIES[name](rng, claim(name).bound)]
    assert len(shares) >= 20
    assert 1e-6 < max(shares) <= 1 + 1e-9


def test_every_true_claim_is_attacked():
    assert set(ADVERSARIES) == set(TRUE)


@pytest.mark.parametrize("found", OURS, ids=lambda found: found.id)
def test_data_are_records_of_the_box_one_coordinate_apart(found):
    data = found.evidence().data
    if {"left", "right"} <= set(data):
        left, right = data["left"], data["right"]
        assert max(np.abs(left).max(), np.abs(right).max()) <= 1
        steps = np.abs(left - right)
        assert 0 < steps.max() <= data["beta"] + 1e-12
        if found.id == "sign-section-4.3-l1":
            assert steps.sum() <= data["beta"]
        else:
            assert np.count_nonzero(steps) == 1


class TestErrata:
    """Remarks that the errata make beside their counterexamples."""

    def test_the_plane_by_angles_agrees_with_draws(self):
        for r in (0.8, 0.9, 0.99):
            w = np.random.default_rng(0).standard_normal((200_000, 2))
            drawn = (r * np.abs(w).max(axis=1) > np.abs(w.sum(axis=1)) / math.sqrt(2)).mean()
            assert two_entries(r) == pytest.approx(drawn, abs=0.005)
            assert two_entries(r) > independent(p=2, r=r) + 1e-4

    def test_lemma_4_2_is_far_off_for_one_entry_that_is_y(self):
        assert independent(p=7, r=1.0) == pytest.approx(7 / 8)  # and Y = X_1 is never larger than the largest

    def test_the_share_of_two_fixed_records_is_below_f(self):
        for p in (1, 2, 10, 784):
            for r in (0.01, 0.3, 0.9, 1.0):
                assert 2 / math.pi * math.asin(r / 2) <= independent(p=p, r=r)

    def test_the_count_is_covered_for_few_signs(self):
        from scipy.stats import binom

        def exceeds(k):
            return binom.sf(math.floor(count(independent(p=2, r=0.9), k, 1e-6)), k, two_entries(0.9)) > 1e-6

        assert not exceeds(1024)
        assert exceeds(3500)

    def test_signs_of_a_concentrated_record_differ_half_of_the_time_for_every_beta(self):
        W = np.random.default_rng(0).integers(0, 2, (2, 4000)) * 2.0 - 1
        for beta in (0.1, 1e-3):
            left, right = flat_pair(2, beta)
            assert ((left @ W > 0) != (right @ W > 0)).mean() == pytest.approx(0.5, abs=0.03)
        assert normal_share(beta=1e-3, norm=0.7) < 0.002

    def test_composition_by_listing_all_outputs(self):
        for k, eta, epsilon in ((3, 0.7, 0.5), (6, 0.4, 1.0)):
            kept = 1 / (1 + math.exp(-eta))
            listed = needed_delta(np.full(k, kept), np.full(k, 1 - kept), epsilon)
            assert composed_delta(k, eta, epsilon) == pytest.approx(listed, rel=1e-12)

    def test_a_gaussian_column_separates_records_by_their_angle(self):
        rng = np.random.default_rng(0)
        u, v = rng.standard_normal((2, 5))
        W = rng.standard_normal((5, 200_000))
        assert ((u @ W > 0) != (v @ W > 0)).mean() == pytest.approx(angle(u, v), abs=0.005)

    def test_noise_of_kenthapadi_is_enough_for_every_epsilon(self):
        for epsilon in (0.01, 1.0, 10.0, 50.0):
            assert gaussian_delta(1.0, kenthapadi(1.0, epsilon, 1e-6), epsilon) <= 1e-6
        assert gaussian_delta(1.0, dwork_roth(1.0, 0.99, 1e-6), 0.99) <= 1e-6
        assert gaussian_delta(1.0, dwork_roth(1.0, 10.0, 1e-6), 10.0) > 1.8e-6

    def test_theorem_c3_is_exact_where_k_divides_p(self):
        u, v = np.array([0.9, -0.4, 0.3, 0.1]), np.array([0.2, 0.8, -0.5, 0.7])
        images = oporp_images(np.vstack([u, v]), 2)
        assert variance(images, 0.2) == pytest.approx(binned(u=u, v=v, sigma=0.2, k=2, p=4), rel=1e-12)

    def test_theorem_a2_is_true_for_a_set_that_does_not_move(self):
        rng, beta, epsilon = np.random.default_rng(0), 0.5, 1.0
        for _ in range(200):
            W = signs(rng, (3, 5))
            left, right = neighbours(rng, 3, beta)
            x, other = left @ W, right @ W
            frozen = response_signs(other, beta, epsilon, mask(x, beta))
            assert loss(response_signs(x, beta, epsilon), frozen) <= epsilon * (1 + 1e-9)

    def test_an_excluded_neighbour_has_an_infinite_loss(self):
        rng, beta = np.random.default_rng(0), 0.5
        for _ in range(200):
            W = signs(rng, (3, 4))
            x, other = (u @ W for u in neighbours(rng, 3, beta))
            both = bool(excluded(x, other, beta)) or bool(excluded(other, x, beta))
            assert math.isinf(loss(response_signs(x, beta, 1.0), response_signs(other, beta, 1.0))) == both

    def test_laplace_noise_before_the_signs_costs_no_more_under_l1(self):
        left, right = (claim("sign-section-4.3-l1").evidence().data[side][0] for side in ("left", "right"))

        def plus(x, scale):
            return np.where(x < 0, np.exp(-np.abs(x) / scale) / 2, 1 - np.exp(-np.abs(x) / scale) / 2)

        assert loss(plus(left, 1.0), plus(right, 1.0)) < 1e-4

    def test_the_gain_of_equation_16_is_lost_if_whole_records_are_replaced(self):
        p, k, sigma = 1024, 64, 10.0
        u = np.full(p, 1 / 32)
        behind = sigma * math.sqrt(p / k)  # Δ₂ of a replaced record grows by the root of the size of a bin
        assert raw(u=u, v=u, sigma=sigma) / binned(u=u, v=u, sigma=behind, k=k, p=p) == pytest.approx(k / p, rel=0.1)

    def test_the_derivative_of_lemma_e1_has_lost_a_factor(self):
        r, rho, step = 0.5, 0.3, 1e-6
        bound = claim("sign-lemma-e1-probability").bound
        slope = (bound(r=r, rho=rho + step) - bound(r=r, rho=rho - step)) / (2 * step)
        ends = (1 + r**2 - 2 * r * rho) * (1 + r**2 + 2 * r * rho)
        printed = 2 * r * rho * (r**2 - 1) / (ends * math.sqrt(1 - rho**2))
        assert slope == pytest.approx(printed / math.pi, rel=1e-6)

    def test_the_smooth_flips_are_below_one_half_and_a_coin_at_zero(self):
        assert smooth(np.zeros(1), 1.0, 1.0)[0] == 0.5
