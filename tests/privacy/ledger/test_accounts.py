"""An account is a privacy filter: no choice of the next spend, its kind included, passes what it promises."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from ppdp import make_pipeline
from ppdp.exceptions import BudgetExceeded, LedgerError
from ppdp.mechanisms import LaplaceMechanism, LogisticRegression
from ppdp.privacy.gaussian import gaussian_delta, gaussian_mu
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.ledger.privacy_filter import RenyiAccount, best_order, pure_mu
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import BoundedRange, FixedSizeSamples, HiddenIterate, Laplace, PoissonSamples, Pure
from ppdp.privacy.renyi import ORDERS
from ppdp.transformers import NormClipper

BUDGETS = [(e, d) for e in (1e-3, 0.1, 1.0, 8.0, 50.0) for d in (1e-3, 1e-6, 1e-9)]

V = np.linspace(-14, 14, 100_001)


# What an adversary gains from one more spend, with `left` of epsilon left: sup over events of P - exp(left) Q.


def from_nothing(left):
    return np.maximum(0.0, -np.expm1(left))


def from_gaussian(mu, left):
    return np.exp(log_ndtr(mu / 2 - left / mu)) - np.exp(left + log_ndtr(-mu / 2 - left / mu))


def from_failure(delta, left):
    return delta + (1 - delta) * from_nothing(left)


def from_pure(epsilon, left):
    p = 1 / (1 + math.exp(-epsilon))
    return np.maximum(0.0, p - np.exp(left) * (1 - p)) + np.maximum(0.0, 1 - p - np.exp(left) * p)


def after_gaussian(mu, epsilon, *gains):
    """True delta of a Gaussian release and, behind it, whichever of these spends gains most at its outcome."""
    density = norm.pdf(V, loc=mu)
    left = epsilon - (mu * V - mu * mu / 2)
    return float((density * np.max([gain(left) for gain in gains], axis=0)).sum() * (V[1] - V[0]))


def is_let_in(ledger, **spend):
    try:
        ledger.reserve(**spend)
    except BudgetExceeded:
        return False
    return True


def most(limit, first, spend, high, **options):
    """Largest x for which the ledger lets in ``spend(x)`` after ``first``."""

    def fits(x):
        ledger = Ledger(*(None, *limit), **options)
        ledger.reserve(**first)
        return is_let_in(ledger, **spend(x))

    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def pure(epsilon):
    return (Pure(epsilon=epsilon),)


class TestAttacks:
    LIMIT = (1.0, 1e-6)

    @pytest.mark.parametrize("accounting", ["auto", "gaussian", "renyi"])
    @pytest.mark.parametrize("share", [0.2, 0.6, 0.9])
    @pytest.mark.repeated("share")
    def test_trading_mu_for_failures_gains_nothing(self, accounting, share):
        """A limit on the sum would let 1.96 delta through: fail if the first outcome was unlucky, go on if lucky."""
        epsilon, delta = self.LIMIT
        first = math.sqrt(share) * gaussian_mu(epsilon, 0.9 * delta) * (0.9 if accounting == "renyi" else 1.0)
        spend, options = {"mu": first}, {"accounting": accounting}
        more = most(self.LIMIT, spend, lambda x: {"mu": x}, 1.0, **options)
        fail = most(self.LIMIT, spend, lambda x: {"mu": 0.0, "delta": x}, delta, **options)
        assert more > 0 < fail
        true = after_gaussian(first, epsilon, lambda e: from_gaussian(more, e), lambda e: from_failure(fail, e))
        assert true <= delta
        if accounting != "renyi" and share == 0.6:
            assert true > 0.95 * delta

        rest = math.sqrt(gaussian_mu(epsilon, delta) ** 2 - first**2)
        lost = delta - gaussian_delta(first, epsilon)
        summed = after_gaussian(first, epsilon, lambda e: from_gaussian(rest, e), lambda e: from_failure(lost, e))
        assert summed > (1.9 if share == 0.6 and accounting != "renyi" else 1.2) * delta

    @pytest.mark.parametrize("accounting", ["gaussian", "renyi"])
    @pytest.mark.parametrize("share", [0.3, 0.6, 0.8])
    @pytest.mark.repeated("accounting", "share")
    def test_choosing_the_kind_by_the_outcome_gains_nothing(self, accounting, share):
        """The tight total of every schedule is within the limit, that of the best choice between two is not."""
        epsilon, delta = self.LIMIT
        first = math.sqrt(share) * gaussian_mu(epsilon, 0.8 * delta)
        kinds = (lambda x: {"mu": x}, lambda x: {"mu": 0.0, "parts": pure(x)})
        more, sure = (most(self.LIMIT, {"mu": first}, kind, 1.0, accounting=accounting) for kind in kinds)
        assert more > 0.01 < sure
        gains = (lambda e: from_gaussian(more, e), lambda e: from_pure(sure, e), from_nothing)
        assert after_gaussian(first, epsilon, *gains) <= delta

        rest = math.sqrt(gaussian_mu(epsilon, delta) ** 2 - first**2)
        high = 1.0
        while PrivacyLoss(first, parts=pure(high)).epsilon(delta) > epsilon:
            high -= 0.01
        declared = (lambda e: from_gaussian(rest, e), lambda e: from_pure(high, e), from_nothing)
        assert after_gaussian(first, epsilon, *declared) > 1.4 * delta

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.repeated("seed", keep=3)
    def test_no_strategy_over_discrete_mechanisms_passes_a_renyi_account(self, seed):
        """All strategies of four rounds, enumerated by dynamic programming over a pool of random mechanisms."""
        draw = np.random.default_rng(seed)
        order = float(draw.uniform(1.3, 30))
        pool = []
        for _ in range(3):
            p, q = draw.dirichlet(np.ones(3)), draw.dirichlet(np.ones(3))
            mix = draw.uniform(0.05, 0.4)
            q = (1 - mix) * p + mix * q
            ways = [math.log((a**order * b ** (1 - order)).sum()) / (order - 1) for a, b in ((p, q), (q, p))]
            pool.append((p, np.log(p / q), max(ways)))
        limit = 2.5 * max(divergence for _, _, divergence in pool)

        @functools.cache
        def best(left, room, rounds):
            gains = [max(0.0, -math.expm1(left))]
            for p, losses, divergence in pool if rounds else ():
                if divergence <= room:
                    gains.append(sum(a * best(left - lo, room - divergence, rounds - 1) for a, lo in zip(p, losses)))
            return max(gains)

        for epsilon in (0.1, 0.5, 1.5):
            assert best(epsilon, limit, 4) <= RenyiAccount(order).delta(limit, epsilon)

    def test_the_bound_of_one_order_is_attained(self):
        """By two outcomes: the loss that matters most at this order, and one that never matters."""
        order, epsilon = 8.0, 1.0
        loss = epsilon + math.log(order / (order - 1))  # where 1 - exp(epsilon - loss) is as large as the bound
        for p in (1e-6, 1e-3):
            q = p * math.exp(-loss)
            divergence = math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
            true = p - math.exp(epsilon) * q
            assert true <= RenyiAccount(order).delta(divergence, epsilon)
        big = math.log(p**order * q ** (1 - order)) / (order - 1)
        assert true == pytest.approx(RenyiAccount(order).delta(big, epsilon), rel=1e-9)


class TestPureInGaussian:
    @pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 5.0, 20.0, 50.0])
    def test_the_gaussian_release_dominates_randomised_response_and_touches_it(self, epsilon):
        mu = pure_mu(epsilon)
        for left in np.linspace(-1, 1, 41) * epsilon * 1.2:
            assert from_pure(epsilon, left) <= gaussian_delta(mu, float(left)) * (1 + 1e-12)
        assert from_pure(epsilon, 0.0) == pytest.approx(gaussian_delta(mu, 0.0), rel=1e-6)

    def test_nothing_costs_nothing_and_small_ones_a_quarter_more_than_their_epsilon(self):
        assert pure_mu(0.0) == 0.0
        assert pure_mu(1e-3) == pytest.approx(math.sqrt(math.pi / 2) * 1e-3, rel=1e-5)

    def test_they_are_added_run_by_run(self):
        ledger = Ledger(accounting="gaussian")
        ledger.reserve(mu=0.3)
        ledger.reserve(mu=0.0, parts=[Laplace(shift=0.1, scale=1.0, count=4)])
        mu = math.hypot(0.3, 2 * pure_mu(0.1))
        assert ledger.epsilon(1e-6) == pytest.approx(PrivacyLoss(mu).epsilon(1e-6), rel=1e-6)
        assert ledger.epsilon(1e-6) > PrivacyLoss(0.3, parts=ledger.spent().parts).epsilon(1e-6)


class TestOrder:
    @pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
    @pytest.mark.repeated("epsilon", "delta", keep=9)
    def test_no_other_order_leaves_more_room_for_gaussian_spends(self, epsilon, delta):
        def room(order):
            account, low, high = RenyiAccount(order), 0.0, 20.0
            for _ in range(60):
                middle = (low + high) / 2
                fits = account.delta(order * middle**2 / 2, epsilon) <= 0.89 * delta / (1 - 0.1 * delta)
                low, high = (middle, high) if fits else (low, middle)
            return low

        best = room(best_order(epsilon, delta))
        assert best > 0
        assert max(room(order) for order in (*ORDERS[::5], 2e4, 1e5)) <= best * (1 + 1e-6)

    @pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
    @pytest.mark.repeated("epsilon", "delta", keep=3)
    def test_gaussian_spends_never_get_more_than_they_exactly_may_and_nearly_as_much(self, epsilon, delta):
        share = 10.0
        ledger = Ledger(epsilon=epsilon, delta=delta, accounting="renyi")
        exact, spent = gaussian_mu(epsilon, delta), 0
        while spent < 200 and is_let_in(ledger, mu=exact / share):
            spent += 1
        assert (0.6 if delta == 1e-3 else 0.85) < math.sqrt(spent) / share <= 1
        assert ledger.epsilon(delta * 0.89) <= epsilon

    @pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
    def test_accounts_agree_with_themselves_and_are_never_below_the_truth(self, epsilon, delta):
        order = best_order(epsilon, delta)
        mu = gaussian_mu(epsilon, delta)
        account = RenyiAccount(order)
        assert account.delta(order * mu**2 / 2, epsilon) >= gaussian_delta(mu, epsilon)
        found = account.epsilon(order * mu**2 / 2, delta)
        assert account.delta(order * mu**2 / 2, found) <= delta * (1 + 1e-9)
        assert account.epsilon(0.0, 0.0) == account.epsilon(math.inf, delta) == math.inf
        assert account.delta(math.inf, epsilon) == 1.0

    def test_equality_with_the_limit_is_within_it(self):
        for epsilon, delta in BUDGETS:
            for spend in ({"delta": delta}, {"parts": pure(epsilon)}, {"parts": pure(epsilon / 3) * 3}):
                ledger = Ledger(epsilon=epsilon, delta=delta)
                ledger.reserve(**{"mu": 0.0, **spend})
                assert ledger.epsilon(delta) <= epsilon * (1 + 1e-9)
            failure, allowance = delta / 10, 1e-15 * delta
            mu = gaussian_mu(epsilon, (delta - failure - allowance) / (1 - failure))
            ledger = Ledger(epsilon=epsilon, delta=delta)
            ledger.reserve(mu=mu, delta=failure, allowance=allowance, epsilon=min(epsilon, 600.0))
            assert ledger.epsilon(delta) <= epsilon * (1 + 1e-6)


class TestKinds:
    HIDDEN = HiddenIterate(mass=2.0, total=0.0, moved=0, n_rows=999, bound=1.0, lipschitz=1.0, noise_scale=40.0)
    SAMPLED = PoissonSamples(
        replaced=1, toggled=0, moved=0, radius=0.0, total=0.0, rate=0.01, bound=1.0, lipschitz=1.0,
        noise_scale=4.0, count=50,
    )  # fmt: skip
    BATCHES = FixedSizeSamples(
        replaced=1, toggled=0, moved=0, radius=0.0, total=0.0, n_rows=1000, batch_size=10, bound=1.0, lipschitz=1.0,
        noise_scale=8.0, count=50,
    )  # fmt: skip
    ALL = (HIDDEN, SAMPLED, BATCHES, *pure(0.05), BoundedRange(range=0.1))

    def test_a_renyi_account_takes_everything(self):
        ledger = Ledger(epsilon=3.0, delta=1e-6, accounting="renyi")
        for part in self.ALL:
            ledger.reserve(mu=0.1, delta=1e-8, allowance=1e-15, parts=[part])
        total = ledger.epsilon(1e-6)
        assert ledger.spent().epsilon(1e-6) < total < 3.0
        many = replace(self.SAMPLED, count=50_000)
        assert not is_let_in(ledger, mu=0.0, parts=[many])

    def test_the_first_spend_decides_and_its_kind_is_kept(self):
        spends = {
            "gaussian": {"mu": 0.1},
            "pure": {"mu": 0.0, "parts": pure(0.05)},
            "other": {"mu": 0, "parts": self.ALL},
        }
        for first, spend in spends.items():
            ledger = Ledger(epsilon=3.0, delta=1e-6)
            ledger.reserve(mu=0.0, delta=1e-9)  # a failure is of every kind
            ledger.reserve(**spend)
            ledger.reserve(**spend)
            for other, stranger in spends.items():
                if first in ("other", other):
                    ledger.reserve(**stranger)
                else:
                    with pytest.raises(LedgerError, match="cannot share"):
                        ledger.reserve(**stranger)

    def test_alone_a_spend_costs_what_it_costs(self):
        """A fit that fills the limit by its loss distribution is admitted, and nothing behind it."""
        loss = PrivacyLoss(parts=(self.SAMPLED,))
        epsilon = loss.epsilon(1e-6)
        ledger = Ledger(epsilon=epsilon, delta=1e-6)
        assert RenyiAccount(best_order(epsilon, 1e-6)).amount(()) == 0.0
        ledger.reserve(mu=0.0, parts=loss.parts)
        assert ledger.epsilon(1e-6) == pytest.approx(epsilon)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(mu=1e-9)
        with pytest.raises(BudgetExceeded):
            Ledger(epsilon=epsilon * 0.99, delta=1e-6).reserve(mu=0.0, parts=loss.parts)

    def test_a_gaussian_account_takes_pure_spends_and_no_sampled_ones(self):
        ledger = Ledger(accounting="gaussian")
        ledger.reserve(mu=0.1, parts=pure(0.1))
        with pytest.raises(LedgerError, match="renyi"):
            ledger.reserve(mu=0.0, parts=[self.SAMPLED])

    def test_a_pure_account_takes_gates(self):
        ledger = Ledger(epsilon=1.0, delta=1e-6, accounting="pure")
        ledger.reserve(mu=0.0, parts=pure(0.5), delta=1e-7)
        ledger.reserve(mu=0.0, parts=pure(0.5))
        assert ledger.epsilon(1e-7) == pytest.approx(1.0)
        assert ledger.epsilon(0.9e-7) == math.inf
        for spend in ({"parts": pure(1e-6)}, {"delta": 1e-8}):
            with pytest.raises(BudgetExceeded):
                ledger.reserve(**{"mu": 0.0, **spend})
        with pytest.raises(LedgerError):
            ledger.reserve(mu=0.1)

    def test_a_spend_without_a_divergence_is_refused_with_a_fix(self):
        ledger = Ledger(epsilon=1e-3, delta=1e-6, accounting="renyi")
        ledger.reserve(mu=1e-6)
        strong = replace(self.SAMPLED, noise_scale=0.5, count=1)
        with pytest.raises(LedgerError, match="order") as caught:
            ledger.reserve(mu=0.0, parts=[strong])
        assert caught.value.fix

    def test_kinds_on_datasets_of_their_own_are_read_together_as_if_declared(self):
        ledger = Ledger()
        ledger.reserve(mu=0.3, dataset="one")
        ledger.reserve(mu=0.0, parts=pure(0.4), dataset="other")
        assert ledger.epsilon(1e-6) == pytest.approx(PrivacyLoss(0.3, parts=pure(0.4)).epsilon(1e-6))
        assert ledger.epsilon(1e-6) > max(ledger.epsilon(1e-6, "one"), ledger.epsilon(1e-6, "other"))


# ---------------- spends of different kinds


class TestPureSpends:
    VOTE = (Pure(epsilon=0.4),)

    def test_their_epsilons_add(self):
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        for _ in range(2):
            ledger.reserve(mu=0.0, parts=self.VOTE)
        assert ledger.epsilon(0.0) == pytest.approx(0.8)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(mu=0.0, parts=self.VOTE)
        assert len(ledger) == 2

    def test_a_pipeline_of_pure_mechanisms_is_charged_what_it_claims(self):
        ledger = Ledger(epsilon=1.0, delta=1e-5)
        pipe = make_pipeline(NormClipper(), LaplaceMechanism(), epsilon=0.5, delta=1e-6, ledger=ledger)
        X = np.linspace(-1, 1, 500)[:, None]
        pipe.fit(X)
        assert 0.49 <= ledger.epsilon(1e-5) <= 0.5
        pipe.fit(X)
        with pytest.raises(BudgetExceeded):
            pipe.fit(X)

    def test_they_do_not_share_an_account_with_gaussian_ones(self):
        """Whoever sees an unlikely Gaussian outcome could spend the rest purely."""
        gaussian, pure = {"mu": 0.1}, {"mu": 0.0, "parts": self.VOTE}
        for first, second in ((gaussian, pure), (pure, gaussian)):
            ledger = Ledger()
            ledger.reserve(**first)
            with pytest.raises(LedgerError, match="ledger"):
                ledger.reserve(**second)
            assert len(ledger) == 1

    def test_what_is_neither_is_refused(self):
        hidden = HiddenIterate(mass=2.0, total=0.0, moved=0, n_rows=9, bound=1.0, lipschitz=1.0, noise_scale=4.0)
        with pytest.raises(LedgerError):
            Ledger().reserve(mu=0.0, parts=[hidden])


@pytest.mark.parametrize("limit", [20.0, 50.0, 500.0])
def test_a_limit_far_above_what_is_spent_refuses_nothing(limit):
    ledger = Ledger(epsilon=limit, delta=1e-6)
    for _ in range(20):
        ledger.reserve(mu=0.02, allowance=1e-14, epsilon=1.0)
    assert ledger.epsilon(1e-6) < 1


@pytest.mark.parametrize("solver", ["poisson", "fixed-size"])
def test_training_on_batches_is_charged_what_it_claims_and_more_fits_follow(solver):
    X = np.linspace(-1, 1, 600)[:, None]
    y = (X[:, 0] > 0).astype(int)
    model = LogisticRegression(classes=(0, 1), solver=solver, batch_size=60, max_iter=5)
    alone = Ledger(epsilon=1.0, delta=1e-6)
    pipe = make_pipeline(NormClipper(), model, epsilon=1.0, delta=1e-6, ledger=alone)
    pipe.fit(X, y)
    assert 0.99 <= alone.epsilon(1e-6) <= 1.0
    with pytest.raises(BudgetExceeded):
        pipe.fit(X, y)
    several = Ledger(epsilon=2.0, delta=1e-5)
    pipe.set_params(ledger=several)
    for _ in range(2):
        pipe.fit(X, y)
    several.reserve(mu=0.01)  # of any kind: the first spend was of none in particular
    assert 1.0 < several.epsilon(1e-5) <= 2.0
