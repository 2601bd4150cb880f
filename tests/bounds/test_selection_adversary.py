"""Choices and scores against an adversary: neighbouring sums of scores, and neighbouring validation rows."""

import math

import numpy as np
import pytest

from ppdp import Adjacency, Domain, PrivacyLoss
from ppdp.bounds.selection import choice_mu, choice_scale, range_mu, range_of, score_mu, score_noise, search_loss
from ppdp.exceptions import ImpossibleBudget
from ppdp.pipeline.search.candidates import row_scores
from ppdp.privacy.gaussian import gaussian_delta

ONE = Adjacency.replace().distance
M = 500


def chances(sums, scale):
    weights = np.exp((sums - sums.max()) / scale)
    return weights / weights.sum()


def worst(sums, others, scale, epsilons, allowed):
    """Largest ratio of what tells two choices apart to what is allowed, over epsilon in both directions."""
    P, Q = chances(sums, scale), chances(others, scale)
    told = [np.maximum(one - np.exp(epsilons)[:, None] * other, 0.0).sum(axis=1) for one, other in ((P, Q), (Q, P))]
    return float((np.where(np.array(told) > 1e-12, told, 0.0) / allowed).max())


@pytest.mark.parametrize("scale", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("candidates", [2, 3, 8])
@pytest.mark.repeated("scale")
def test_no_pair_of_choices_is_told_apart_more_easily(scale, candidates):
    rng = np.random.default_rng(0)
    mu, epsilons = choice_mu(M, ONE, scale), np.linspace(0, 2 / scale, 30)
    allowed = np.array([gaussian_delta(mu, epsilon) for epsilon in epsilons])
    reached = 0.0
    for start in range(12):
        sums = scale * rng.normal(0, 1, candidates)
        change = rng.choice([-1.0, 1.0], candidates)
        if start == 0:  # a tie of two, far ahead of the others, that the row turns
            sums, change = np.full(candidates, -100 * scale), np.zeros(candidates)
            sums[:2], change[:2] = (-0.5, 0.5), (1.0, -1.0)
        best = worst(sums, sums + change, scale, epsilons, allowed)
        for _ in range(40):
            trial = sums + 0.5 * scale * rng.normal(0, 1, candidates)
            turned = np.clip(change + rng.normal(0, 0.3, candidates), -1, 1)
            if (value := worst(trial, trial + turned, scale, epsilons, allowed)) > best:
                sums, change, best = trial, turned, value
        reached = max(reached, best)
    assert 0.999 <= reached <= 1.0


@pytest.mark.parametrize("eta", [1e-6, 1e-3, 0.5, 2.0, 10.0, 60.0])
def test_two_coins_of_any_bias_are_dominated(eta):
    """Theorem 1: coins whose log-odds differ by eta are furthest apart where one is the other turned over."""
    from scipy.special import expit, ndtri

    x = np.linspace(-eta - 20, 20, 4001)

    def quantile(z):
        return np.sign(z) * -ndtri(expit(-np.abs(z)))

    gaps = quantile(x + eta) - quantile(x)
    assert gaps.max() <= range_mu(eta) * (1 + 1e-9) + 1e-9
    assert range_mu(eta) == pytest.approx(-2 * ndtri(expit(-eta / 2)), rel=1e-8)
    assert range_mu(range_of(range_mu(eta))) <= range_mu(eta)
    assert range_of(range_mu(eta)) == pytest.approx(eta, rel=1e-7)


def test_ranges_beyond_all_measure():
    assert range_mu(5000.0) == math.inf
    assert range_mu(0.0) <= 1e-14


@pytest.mark.parametrize("mu", [1e-4, 0.05, 0.3, 3.0])
@pytest.mark.parametrize("rows_per_unit", [1, 4])
def test_least_noise_for_a_budget(mu, rows_per_unit):
    far = Adjacency.replace(rows_per_unit).distance
    scale, noise = choice_scale(M, far, mu), score_noise(M, far, 3, mu)
    assert mu * 0.99 <= choice_mu(M, far, scale) <= mu
    assert mu * 0.995 <= score_mu(M, far, 3, noise) <= mu * (1 + 1e-9)
    assert scale == pytest.approx(2 * rows_per_unit / range_of(mu), rel=1e-2)
    assert noise == pytest.approx(rows_per_unit * math.sqrt(3) / (M * mu), rel=5e-3)


def test_no_budget_for_the_lattice():
    with pytest.raises(ImpossibleBudget):
        choice_scale(M, ONE, 1e-9)
    with pytest.raises(ImpossibleBudget):
        score_noise(M, ONE, 1, 1e-12)


REGRESSION, LABELS = Domain(y_range=(0.0, 10.0)), Domain(classes=(0, 1))


def scoring(answer, predicted):
    """Clipped on both sides, and failing where the answer is 7."""
    return 3.0 * math.cos(answer * predicted) / (answer - 7.0)


@pytest.mark.parametrize(
    ("domain", "own", "answers"),
    [
        (LABELS, None, [0, 1]),
        (REGRESSION, None, [0.0, 10.0, -5.0, 3.3, 1e300, np.nan, np.inf]),
        (REGRESSION, scoring, [0.0, 10.0, 3.0, 7.0, np.nan]),
    ],
    ids=["labels", "numbers", "own"],
)
def test_one_row_changes_scores_by_no_more_than_is_charged(domain, own, answers):
    """Sums of scores of four candidates when one validation row is replaced, predictions and answer."""
    rng = np.random.default_rng(0)
    regression = domain.classes is None

    def sums(y, predictions):
        columns = [row_scores(domain, y, p, own, regression=regression) for p in predictions]
        assert all(((c >= 0) & (c <= 1)).all() for c in columns)
        return np.array([c.sum() for c in columns])

    widest = furthest = 0.0
    for attempt in range(150):
        y = rng.choice(answers, 6)
        predicted = rng.choice([a for a in answers if np.isfinite(a) and abs(a) < 1e6], (4, 6)).astype(y.dtype)
        changed, others = y.copy(), predicted.copy()
        i = rng.integers(6)
        changed[i], others[:, i] = rng.choice(answers), rng.choice(predicted.ravel(), 4)
        if attempt == 0:  # two candidates are right and two wrong, and then the other way round
            y[i], changed[i], predicted[:, i] = answers[0], answers[1], np.array(answers)[[0, 1, 0, 1]]
            others[:, i] = predicted[:, i]
        change = sums(changed, others) - sums(y, predicted)
        widest, furthest = max(widest, np.ptp(change)), max(furthest, np.linalg.norm(change))
    assert (1.9 if own is None else 1.0) <= widest <= 2 + 1e-12
    assert (1.9 if own is None else 1.0) <= furthest <= math.sqrt(4) + 1e-12


class TestTheWhole:
    def test_fits_or_choice_and_then_a_refit(self):
        fits, refits = [PrivacyLoss(0.03), PrivacyLoss(0.04)], [PrivacyLoss(0.12), PrivacyLoss(0.1)]
        assert search_loss(fits, PrivacyLoss(0.02), refits, apart=True).mu == pytest.approx(0.13)
        assert search_loss(fits, PrivacyLoss(0.09), refits, apart=True).mu == pytest.approx(0.15)
        assert search_loss(fits, PrivacyLoss(0.05), [], apart=True).mu == pytest.approx(0.05)
        together = math.sqrt(0.05**2 + 0.02**2 + 0.12**2)
        assert search_loss(fits, PrivacyLoss(0.02), refits, apart=False).mu == pytest.approx(together)

    def test_failures_add_and_gates_count_as_failures(self):
        fits = [PrivacyLoss(0.1, 1e-3), PrivacyLoss(0.1, gate=2e-3)]
        total = search_loss(fits, PrivacyLoss(0.1), [PrivacyLoss(0.1, 4e-3), PrivacyLoss(0.1)], apart=True)
        assert total.failure == pytest.approx(1 - (1 - 1e-3) * (1 - 2e-3) * (1 - 4e-3))
        assert total.gate == 0.0

    @pytest.mark.parametrize("side", ["training", "validation"])
    def test_a_search_of_two_numbers_is_no_easier_to_tell_than_that(self, side):
        """Exact test between neighbours: two noisy fits, a choice that depends on them, a refit that depends on it."""
        rng = np.random.default_rng(0)
        fits, refit, scale, draws = 0.5, 0.7, 3.0, 200_000
        total = search_loss(
            [PrivacyLoss(fits)] * 2, PrivacyLoss(choice_mu(10, ONE, scale)), [PrivacyLoss(refit)] * 2, apart=True
        )
        shift = 1.0 if side == "training" else 0.0
        models = rng.normal(0, 1, (draws, 2)) + fits * shift  # drawn on one side, weighed by the other
        log_ratio = (fits * shift * models - (fits * shift) ** 2 / 2).sum(axis=1)
        row = (1 - shift) * np.where(models > 0, 1.0, -1.0)  # what the replaced row does to the sums
        here, there = (1 / (1 + np.exp((models[:, 1] - models[:, 0] + d) / scale)) for d in (row[:, 1] - row[:, 0], 0))
        chosen = rng.random(draws) < here
        log_ratio += np.log(np.where(chosen, here / there, (1 - here) / (1 - there)))
        log_ratio += refit * (rng.normal(0, 1, draws) + refit) - refit**2 / 2
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            told = np.maximum(1 - np.exp(epsilon - log_ratio), 0.0)
            assert told.mean() <= total.delta(epsilon) + 4 * told.std() / math.sqrt(draws)
