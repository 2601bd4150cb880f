"""Spends of different kinds on one account, and what they come to."""

import numpy as np
import pytest

from ppdp import make_pipeline
from ppdp.exceptions import BudgetExceeded, LedgerError
from ppdp.mechanisms import LaplaceMechanism, LogisticRegression
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.losses import HiddenIterate, Pure
from ppdp.transformers import NormClipper


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
