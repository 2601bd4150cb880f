"""What does not simply add up: blocks of rows, campaigns, and fits behind one gate."""

import copy
import pickle

import numpy as np
import pytest

from ppdp import Domain, make_pipeline
from ppdp.exceptions import BudgetExceeded, InvalidParameter, LedgerError
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import PoissonSamples, Pure
from ppdp.transformers import NormClipper

SAMPLED = PoissonSamples(replaced=1, toggled=0, moved=0, radius=0.0, total=0.0, rate=0.01, bound=1.0, lipschitz=1.0,
    noise_scale=2.0, count=200,
)  # fmt: skip


class TestBlocks:
    def test_the_worst_block_counts_not_the_sum(self):
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        for year in ("2019", "2020", "2021"):
            ledger.block(year).reserve(mu=0.2)
        assert ledger.epsilon(1e-6) == PrivacyLoss(0.2).epsilon(1e-6)
        assert [entry.block for entry in ledger.entries()] == ["2019", "2020", "2021"]
        with pytest.raises(BudgetExceeded):
            ledger.block("2020").reserve(mu=0.2)
        ledger.block("2022").reserve(mu=0.1)

    def test_what_looked_at_all_rows_is_added_to_every_block(self):
        for early in (True, False):
            ledger = Ledger(epsilon=1.0, delta=1e-6)
            if early:
                ledger.reserve(mu=0.15)
            ledger.block("a").reserve(mu=0.15)
            ledger.block("b").reserve(mu=0.05)
            if not early:
                ledger.reserve(mu=0.15)
            assert ledger.epsilon(1e-6) == pytest.approx(PrivacyLoss(0.15 * 2**0.5).epsilon(1e-6))
            with pytest.raises(BudgetExceeded):
                ledger.reserve(mu=0.15)
            ledger.block("b").reserve(mu=0.1)

    def test_blocks_of_several_datasets_are_read_as_if_they_were_the_same_people(self):
        ledger = Ledger()
        ledger.block("a").reserve(mu=0.3, dataset="one")
        ledger.block("b").reserve(mu=0.4, dataset="other")
        assert ledger.epsilon(1e-6) == pytest.approx(PrivacyLoss(0.5).epsilon(1e-6))

    def test_each_block_has_its_own_kind(self):
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        ledger.block("a").reserve(mu=0.1)
        ledger.block("b").reserve(mu=0.0, parts=[Pure(epsilon=0.2)])
        with pytest.raises(LedgerError, match="cannot share"):
            ledger.reserve(mu=0.1)
        ledger.block("c").reserve(mu=0.0, parts=[SAMPLED])

    def test_a_person_with_several_rows_may_be_in_several_blocks(self):
        with pytest.raises(LedgerError, match="several"):
            Ledger().block("a").reserve(mu=0.1, rows_per_unit=2)

    def test_a_block_is_the_same_account(self, tmp_path):
        ledger = Ledger(tmp_path / "account.sqlite", 1.0, 1e-6)
        block = ledger.block("2020")
        assert copy.deepcopy(block) is block
        pickle.loads(pickle.dumps(block)).reserve(mu=0.1)
        assert ledger.entries()[0].block == "2020"
        assert repr(block).endswith(".block('2020')")
        lonely = Ledger().block("kept open")
        assert lonely.reserve(mu=0.1) == 1

    @pytest.mark.parametrize("name", ["", None, 2020])
    def test_a_block_needs_a_name(self, name):
        with pytest.raises(InvalidParameter, match="name"):
            Ledger().block(name)

    def test_a_pipeline_is_charged_to_its_block(self):
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        X = np.linspace(-1, 1, 500)[:, None]
        for name, rows in (("odd", X[::2]), ("even", X[1::2])):
            make_pipeline(NormClipper(), GaussianMechanism(), delta=1e-6, ledger=ledger.block(name)).fit(rows)
        assert {(e.block, e.status) for e in ledger.entries()} == {("odd", "released"), ("even", "released")}
        assert ledger.epsilon(1e-6) <= 1.0
        with pytest.raises(BudgetExceeded):
            make_pipeline(NormClipper(), GaussianMechanism(), epsilon=0.1, ledger=ledger).fit(X)


class TestCampaigns:
    @staticmethod
    def plans(*epsilons):
        domain = Domain(n_rows=500, n_features=1)
        for epsilon in epsilons:
            for mechanism in (GaussianMechanism(), LaplaceMechanism()):
                yield make_pipeline(NormClipper(), mechanism, epsilon=epsilon, delta=1e-7).plan(domain)

    def test_declared_together_they_compose_tightly(self):
        plans = list(self.plans(0.3, 0.3))
        tight = sum((plan.loss for plan in plans), PrivacyLoss()).epsilon(1e-6)
        ledger = Ledger(epsilon=tight * 1.001, delta=1e-6)
        number = ledger.reserve_all(plans, label="all of them")
        ledger.settle(number, "released")
        assert tight <= ledger.epsilon(1e-6) <= tight * 1.001
        one_by_one = Ledger(epsilon=9.0, delta=1e-6, accounting="renyi")
        for plan in plans:
            one_by_one.reserve_all([plan])
        assert one_by_one.epsilon(1e-6) > tight
        with pytest.raises(BudgetExceeded):
            ledger.reserve_all(plans[:1])

    def test_their_noise_and_their_gates_are_charged(self):
        plans = list(self.plans(0.3))
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        ledger.reserve_all(plans)
        (entry,) = ledger.entries()
        paid = sum(plan.allowance / (1 + np.exp(plan.epsilon)) for plan in plans)
        assert entry.total_variation == pytest.approx(paid)
        assert entry.loss == plans[0].loss + plans[1].loss

    def test_a_campaign_is_of_one_unit_of_privacy(self):
        people = [Domain(n_rows=500, n_features=1, rows_per_unit=k) for k in (1, 2)]
        plans = [make_pipeline(NormClipper(), GaussianMechanism()).plan(domain) for domain in people]
        for some in (plans, []):
            with pytest.raises(InvalidParameter, match="campaign"):
                Ledger().reserve_all(some)

    def test_a_campaign_is_a_list_of_plans(self):
        """A generator can be read only once: its plans would be charged with nothing."""
        ledger = Ledger()
        for junk in ([3], 5, None, "plans", self.plans(0.3)):
            with pytest.raises(InvalidParameter, match="campaign"):
                ledger.reserve_all(junk)
        assert len(ledger) == 0


class TestSharedGate:
    GATE = "gap above 0.1 on all rows of 2020"

    def behind(self, **change):
        spend = {"mu": 0.1, "delta": 1e-7, "gate": self.GATE, "behind": 1}
        return {**spend, **change}

    @pytest.fixture
    def ledger(self):
        ledger = Ledger(epsilon=2.0, delta=1e-6)
        number = ledger.reserve(mu=0.1, delta=1e-7, gate=self.GATE)
        ledger.settle(number, "released")
        return ledger

    def test_its_delta_counts_once(self, ledger):
        for _ in range(3):
            ledger.reserve(**self.behind())
        assert ledger.spent() == PrivacyLoss(np.hypot(0.1, np.hypot(0.1, np.hypot(0.1, 0.1))), 1e-7)
        assert [entry.behind for entry in ledger.entries()] == [None, 1, 1, 1]
        without = {"mu": 0.0, "delta": 1e-7}
        with pytest.raises(BudgetExceeded):
            ledger.reserve(**without)

    def test_it_must_have_passed(self, ledger):
        for outcome in (None, "refused", "failed"):
            number = ledger.reserve(mu=0.1, delta=1e-7, gate=self.GATE, dataset="other")
            if outcome:
                ledger.settle(number, outcome)
            with pytest.raises(LedgerError, match="released"):
                ledger.reserve(**self.behind(behind=number, dataset="other"))
            ledger = Ledger()

    @pytest.mark.parametrize("outcome", ["released", "refused", "failed"])
    def test_a_refused_one_cannot_be_settled_again(self, outcome):
        ledger = Ledger()
        number = ledger.reserve(mu=0.1, delta=1e-7, gate=self.GATE)
        ledger.settle(number, outcome)
        with pytest.raises(LedgerError, match="still to be settled"):
            ledger.settle(number, "released")
        assert ledger.entries()[0].status == outcome

    @pytest.mark.parametrize(
        "change", [{"gate": "another"}, {"gate": ""}, {"delta": 2e-7}, {"behind": 9}, {"dataset": "x"}]
    )
    def test_it_must_be_the_same(self, ledger, change):
        with pytest.raises(LedgerError):
            ledger.reserve(**self.behind(**change))
        assert len(ledger) == 1

    def test_it_must_have_been_paid_for(self, ledger):
        second = ledger.reserve(**self.behind())
        ledger.settle(second, "released")
        with pytest.raises(LedgerError, match="not behind"):
            ledger.reserve(**self.behind(behind=second))

    def test_it_must_have_seen_the_same_block(self, ledger):
        with pytest.raises(LedgerError, match="same rows"):
            ledger.block("2020").reserve(**self.behind())
