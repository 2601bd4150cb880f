"""What the errata remark beside their counterexamples."""

import math

import numpy as np
import pytest
from drawn_rows import neighbours, rows_around

from literature import claim
from literature.divergence import Mixture, renyi_divergence
from literature.preprocessing.components import eigengap, leading
from literature.preprocessing.descent import lemma_3, sampled_rdp, sampled_with_replacement
from literature.preprocessing.gate import refusal, theorem_8, threshold
from literature.preprocessing.iteration import iteration_noise, linear_pass
from ppdp.core.adjacency import Adjacency
from ppdp.privacy.renyi import gaussian_curve, hidden_iterate_curve, linear_weak_triangle


class TestErrata:
    """Remarks that the errata make beside their counterexamples."""

    @pytest.mark.parametrize(("n", "k"), [(4, 1), (4, 2), (9, 3)])
    def test_lemma_3_is_true_for_single_draws(self, n, k):
        tau = 0.1  # as large as the noise: (alpha - 1) times its divergence is the lemma's limit
        printed = lemma_3(rows=n, batch=1, k=k, whole=1.0, part=1.0 / k**2)
        for end in (0.0, 0.5, 1.0 - tau):
            one, other = (np.append(x, np.zeros(n - 1)) for x in (end, end + tau))
            assert sampled_with_replacement(one, other, 1, tau, 2.0) <= printed

    @pytest.mark.parametrize("n", [100, 1000])
    def test_theorem_14_with_constant_64_keeps_far_below(self, n):
        """The figure of the erratum; constant 1 is its data."""
        shares = []
        for unit in np.geomspace(0.15, 5, 12):  # L√T/(εn); the noise is 8 times that, at least 1
            most = min(n * unit, unit**2 * math.log(n / unit))
            if 8 * unit < 1 or most <= 1:
                continue
            rest = np.full(n - 1, -1.0)
            laws = [Mixture.of(np.append(end, rest), 8 * unit) for end in (-1.0, 1.0)]
            for alpha in np.geomspace(1.001, most, 5):
                shares.append(renyi_divergence(alpha, *laws) / sampled_rdp(alpha=alpha, epsilon=1 / (n * unit)))
        assert 0.01 < max(shares) <= 0.0834

    def test_theorem_15_under_the_condition_of_table_1(self):
        """ε = 1/(nα²): the RDP is exceeded as much as elsewhere, the smooth RDP is not."""
        n, alpha = 1000, 2.0
        epsilon = 1 / (n * alpha**2)
        noise = iteration_noise(rows=n, lipschitz=1.0, epsilon=epsilon)
        one, other = (np.append(end, np.zeros(n - 1)) for end in (1.0, -1.0))
        reached = renyi_divergence(alpha, linear_pass(one, n, noise), linear_pass(other, n, noise))
        assert reached / claim("thm-15").bound(alpha=alpha, epsilon=epsilon) == pytest.approx(4.524, abs=1e-3)
        n, alpha = 2, 1.02
        noise = iteration_noise(rows=n, lipschitz=1.0, epsilon=1 / (n * alpha**2))
        reached = renyi_divergence(alpha, linear_pass(np.zeros(2), 1, noise), linear_pass(np.eye(2)[0], 1, noise))
        printed = claim("thm-15-smooth").bound(alpha=alpha, tau=1.0, smoothness=1.0, lipschitz=1.0, rows=n, kappa=1)
        assert reached / printed == pytest.approx(0.0022, abs=5e-5)

    def test_gamma_of_the_class_does_not_bound_a_hybrid_outside_of_it(self):
        """Theorem 2: one row of the hybrid moves where all rows of L move alike, so γ = 1 of L is too small."""
        n, epsilon, tau = 1000, 0.002, 0.5
        noise = 1 / (epsilon * n)
        one, other = (Mixture.of(np.append(end, np.zeros(n - 1)), noise) for end in (0.0, tau))
        public = {"epsilon": epsilon, "smoothness": 1.0, "tau": tau, "lipschitz": 1.0}
        printed = {gamma: claim("thm-14-smooth").bound(alpha=2.0, gamma=gamma, **public) for gamma in (1.0, n)}
        reached = renyi_divergence(2.0, one, other)
        assert (printed[1.0], reached) == (pytest.approx(1e-6), pytest.approx(1.72e-6, abs=5e-9))
        assert printed[1.0] < reached < printed[n]
        assert "1.72·10⁻⁶ at order 2" in claim("thm-2").erratum

    def test_coordinates_up_to_a_rotation_move_no_more_than_proposition_5_says(self):
        """By at most √2 times the turn of the projector; on the pair that refutes it as printed, not at all."""

        def share(X, Y, k):
            one, other = leading(X, k), leading(Y, k)
            left, _, right = np.linalg.svd(other.T @ one)
            moved = np.linalg.norm(X[1:] @ (one - other @ left @ right), axis=1).max()
            turned = np.linalg.norm(one @ one.T - other @ other.T, 2)
            assert moved <= math.sqrt(2) * turned + 1e-12
            gap = min(eigengap(Z, j) for Z in (X, Y) for j in (1, k))
            return moved / claim("prop-5-dim").bound(rows=len(X), gap=gap)

        refuting, reflected = (claim(name).evidence().data for name in ("prop-5-dim", "prop-5-rank"))
        assert share(refuting["left"], refuting["right"], 3) < 1e-12
        assert 0.1 < share(reflected["left"], reflected["right"], 1) < 1
        rng = np.random.default_rng(0)
        for _ in range(300):
            d = int(rng.integers(2, 6))
            k, spread = int(rng.integers(1, d)), rng.uniform(0.01, 1, d)
            X, Y = neighbours(rng, int(rng.integers(12, 200)), d)
            assert share(X * spread, Y * spread, k) < 1

    @pytest.mark.parametrize(("radius", "exceeded"), [(1.0, False), (3.4, False), (3.5, True), (10.0, True)])
    def test_appendix_f2_is_exceeded_beyond_the_root_of_12(self, radius, exceeded):
        shown = claim("appendix-f2").evidence()
        left, right = (shown.data[side] * radius / 10 for side in ("left", "right"))
        gap = min(eigengap(X, 1) for X in (left, right))
        printed = claim("appendix-f2").bound(rows=len(left), gap=gap, clip=1.0)
        assert (shown.attained > printed) == exceeded  # the turn, and the clipped rows, are the same for every radius

    def test_theorem_2_with_the_best_c_is_exact_for_gaussian_noise(self):
        assert claim("thm-2-everywhere").evidence().printed == pytest.approx(linear_weak_triangle(50.0, 0.5)(11.0))

    def test_theorem_15_is_true_and_loose_where_most_times_are_left(self):
        n, alpha, epsilon = 1000, 2.0, 0.1
        noise = iteration_noise(rows=n, lipschitz=1.0, epsilon=epsilon)
        least = {
            kappa: hidden_iterate_curve(
                Adjacency.replace().distance, n_rows=n - kappa + 1, bound=1.0, lipschitz=1.0, noise_scale=noise
            )
            for kappa in (1, n // 2)
        }
        printed = claim("thm-15").bound(alpha=alpha, epsilon=epsilon)
        assert all(printed > 16 * curve(alpha) for curve in least.values())

    def test_a_test_by_the_computable_margin_refuses_twice_as_often_as_printed(self):
        epsilon, delta, n, excess = 1.0, 1e-3, 1000, 0.2
        margin = excess * n / 12.2
        assert margin > threshold(epsilon=epsilon, delta=delta)
        printed = claim("prop-9-refusal").bound(epsilon=epsilon, delta=delta, excess=excess, rows=n)
        assert refusal(margin, epsilon=epsilon, delta=delta) == pytest.approx(2 * printed)

    def test_the_gate_is_right_up_to_log_4(self):
        """Data of margin 1 pass with at most δ."""
        for epsilon in (0.1, 1.0, math.log(4)):
            assert 1 - refusal(1.0, epsilon=epsilon, delta=1e-6) <= 1e-6 * (1 + 1e-9)
        assert 1 - refusal(1.0, epsilon=1.5, delta=1e-6) > 1.1e-6

    def test_the_regularity_that_theorem_8_needs_is_one_sided(self):
        """A dataset without a gap beside one with a gap: the projectors differ by what the one gap allows."""
        rng = np.random.default_rng(1)
        for _ in range(200):
            X, Y = rows_around(rng, 101, [1, 0.3])
            gap = max(eigengap(X, 1), eigengap(Y, 1))
            a, b = leading(X, 1), leading(Y, 1)
            assert np.linalg.norm(a @ a.T - b @ b.T, 2) <= 12.2 / (101 * gap)

    def test_the_sum_in_lemma_4_is_reversed(self):
        """Its theorem takes the m-th harmonic number for at most log(m + 1)."""
        for m in (1, 10, 1000):
            assert sum(1 / j for j in range(1, m + 1)) > math.log(m + 1)

    def test_the_corrected_hidden_iterate_covers_both_counterexamples(self):
        for name in ("thm-15", "thm-15-smooth"):
            shown = claim(name).evidence()
            assert shown.printed < shown.attained <= shown.ours

    def test_theorem_8_grows_with_its_parameters(self):
        base = theorem_8(epsilon=0.1, delta=1e-6, gap=0.5)
        assert base < theorem_8(epsilon=0.2, delta=1e-6, gap=0.5)
        assert base < theorem_8(epsilon=0.1, delta=1e-7, gap=0.5)
        assert base < theorem_8(epsilon=0.1, delta=1e-6, gap=0.4)


def test_the_divergence_of_mixtures_is_that_of_single_normals():
    one, other = Mixture.of(0.0, 2.0), Mixture.of(3.0, 2.0)
    assert renyi_divergence(4.0, one, other) == pytest.approx(gaussian_curve(1.5)(4.0), rel=1e-9)
