"""The ledger: no spend is lost, none is counted twice, none comes back."""

import copy
import itertools
import math
import pickle
import random
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from effort import rounds
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone

from ppdp.exceptions import BudgetExceeded, InvalidParameter, LedgerError
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.loss import PrivacyLoss


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """Build a ledger of either kind; the tests that use this hold for both."""
    numbers = itertools.count()

    def build(**limit):
        path = tmp_path / f"account {next(numbers)}?.sqlite" if request.param == "file" else None
        return Ledger(path, **limit)

    return build


def total_delta(spends, epsilon):
    """δ(ε) of spends (mu, delta, total variation): written down independently, from the closed form."""
    mu = math.sqrt(sum(m * m for m, _, _ in spends))
    failure = 1 - math.prod(1 - d for _, d, _ in spends)
    gauss = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    return failure + (1 - failure) * gauss + (1 + math.exp(epsilon)) * sum(a for _, _, a in spends)


def total_epsilon(spends, delta):
    """Where δ(ε) first falls to delta; beyond its minimum imperfect noise makes it rise again."""
    grid = np.linspace(0, 40, 401)
    lowest = grid[np.argmin([total_delta(spends, e) for e in grid])]
    return brentq(lambda e: total_delta(spends, e) - delta, 0, lowest, xtol=1e-13)


def record(ledger, spends):
    for mu, delta, variation in spends:
        ledger.reserve(mu=mu, delta=delta, allowance=2 * variation)


# ---------------------------------------------------------------- what is recorded


def test_an_entry_says_what_was_spent_on_what_and_when(make):
    ledger = make()
    before = datetime.now(UTC)
    number = ledger.reserve(mu=0.5, delta=1e-7, allowance=1e-15, dataset="clinic", label="first model")
    (entry,) = ledger.entries()
    assert (entry.id, entry.dataset, entry.label) == (number, "clinic", "first model")
    assert (entry.mu, entry.delta, entry.total_variation, entry.status) == (0.5, 1e-7, 5e-16, "reserved")
    stamp = datetime.fromisoformat(entry.time)
    assert stamp.utcoffset() == timedelta(0)
    assert abs(stamp - before) < timedelta(minutes=5)
    with pytest.raises(FrozenInstanceError):
        entry.mu = 0.0


def test_numpy_numbers_are_recorded_as_numbers(make):
    ledger = make()
    ledger.reserve(mu=np.float32(0.5), delta=np.float64(0.25))
    assert ledger.spent() == PrivacyLoss(0.5, 0.25)


@pytest.mark.parametrize("outcome", ["released", "refused", "failed"])
def test_a_spend_never_comes_back_however_it_ends(make, outcome):
    ledger = make(epsilon=1.0, delta=1e-6)
    number = ledger.reserve(mu=0.2)
    spent = ledger.spent()
    ledger.settle(number, outcome)
    assert ledger.entries()[0].status == outcome
    assert ledger.spent() == spent == PrivacyLoss(0.2)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(mu=0.2)


def test_settle_takes_known_entries_and_outcomes_only(make):
    ledger = make()
    number = ledger.reserve(mu=0.1)
    with pytest.raises(InvalidParameter, match="released"):
        ledger.settle(number, "refunded")
    with pytest.raises(LedgerError, match="no entry"):
        ledger.settle(number + 1, "released")
    for junk in ("a", None, str(number), True):
        with pytest.raises(InvalidParameter, match="entry_id"):
            ledger.settle(junk, "released")
    assert ledger.entries()[0].status == "reserved"


def test_datasets_have_accounts_of_their_own_and_no_name_means_default(make):
    ledger = make(epsilon=1.0, delta=1e-6)
    ledger.reserve(mu=0.2)
    ledger.reserve(mu=0.1, dataset="default")
    ledger.reserve(mu=0.2, dataset="other")
    assert [e.dataset for e in ledger.entries()] == ["default", "default", "other"]
    assert ledger.spent("default").mu == pytest.approx(math.sqrt(0.05), rel=1e-14)
    assert ledger.spent("other") == PrivacyLoss(0.2)
    assert ledger.entries("unheard of") == ()
    assert ledger.spent("unheard of") == PrivacyLoss()
    # without a name: as if all datasets were the same people, the careful reading
    assert ledger.spent().mu == pytest.approx(0.3, rel=1e-14)
    assert ledger.epsilon(1e-6) > ledger.epsilon(1e-6, "default") > ledger.epsilon(1e-6, "other")


def test_an_empty_ledger_is_true_and_has_length_zero(make):
    ledger = make()
    assert len(ledger) == 0
    assert bool(ledger)
    ledger.reserve(mu=0.1)
    assert len(ledger) == 1


@pytest.mark.parametrize(
    "spend",
    [
        {"mu": -0.1},
        {"mu": math.inf},
        {"mu": math.nan},
        {"mu": 0.1, "delta": -1e-9},
        {"mu": 0.1, "delta": 1.1},
        {"mu": 0.1, "delta": math.nan},
        {"mu": 0.1, "allowance": -1e-18},
        {"mu": 0.1, "allowance": math.nan},
        {"mu": 0.1, "epsilon": -1.0},
        {"mu": 0.1, "epsilon": math.inf},
        *({"mu": 0.1, "rows_per_unit": value} for value in (0, -3, 1.5, "a", True, None)),
        *({"mu": value} for value in ("a", np.array([0.1, 0.2]), None, True)),
        {"mu": 0.1, "delta": None},
        {"mu": 0.1, "epsilon": "1"},
        *({"mu": 0.1, "parts": value} for value in ([3], 5, None)),
        *({"mu": 0.1, name: 3} for name in ("label", "gate", "dataset")),
        {"mu": 0.1, "behind": "a"},
    ],
)
def test_impossible_spends_are_refused_and_not_recorded(make, spend):
    ledger = make()
    with pytest.raises(InvalidParameter):
        ledger.reserve(**spend)
    assert len(ledger) == 0


# ---------------------------------------------------------------- arithmetic


@pytest.mark.parametrize(
    "spends",
    [
        [(1.0, 0.0, 0.0)],
        [(0.3, 0.0, 0.0), (0.4, 0.0, 0.0)],
        [(0.3, 1e-7, 0.0), (0.2, 2e-7, 0.0), (0.05, 0.0, 0.0)],
        [(0.5, 1e-7, 1e-12), (0.5, 0.0, 3e-9)],
        [(2.0, 1e-7, 1e-18)] * 3,
    ],
)
def test_total_is_the_closed_form(make, spends):
    ledger = make()
    record(ledger, spends)
    expected = total_epsilon(spends, 1e-6)
    assert ledger.epsilon(1e-6) == pytest.approx(expected, rel=1e-7)
    assert total_delta(spends, ledger.epsilon(1e-6)) <= 1e-6  # rounded up, never down
    assert ledger.spent().mu == pytest.approx(math.sqrt(sum(m * m for m, _, _ in spends)), rel=1e-14)
    assert ledger.spent().failure == pytest.approx(1 - math.prod(1 - d for _, d, _ in spends), rel=1e-8)


def test_failure_probabilities_add_because_the_maximum_is_false(make):
    """A gate chosen from an earlier output, mu 0.3 each and failure 1e-6: the true δ(1.9) is 1.778e-6."""
    ledger = make()
    record(ledger, [(0.3, 0.0, 0.0), (0.3, 1e-6, 0.0)])
    assert ledger.spent().delta(1.9) >= 1.778e-6
    assert ledger.epsilon(1.777e-6) > 1.9


def test_an_allowance_is_charged_at_the_total_epsilon_not_at_the_one_it_was_set_aside_at(make):
    """Two fits at epsilon 1, each with (1 + e) tv set aside, owe 2 (1 + exp(ε)) tv at their total ε."""
    ledger, variation = make(), 1e-8
    for _ in range(2):
        ledger.reserve(mu=0.3, allowance=(1 + math.e) * variation, epsilon=1.0)
    spends = [(0.3, 0.0, variation)] * 2
    assert ledger.epsilon(1e-6) == pytest.approx(total_epsilon(spends, 1e-6), rel=1e-7)
    unaware = make()
    for _ in range(2):
        unaware.reserve(mu=0.3, allowance=(1 + math.e) * variation)
    assert unaware.epsilon(1e-6) > ledger.epsilon(1e-6)


def test_delta_that_does_not_cover_the_failures_means_infinite_epsilon(make):
    ledger = make()
    ledger.reserve(mu=0.1, delta=1e-6)
    assert ledger.epsilon(1e-6) == math.inf
    assert ledger.epsilon(0.0) == math.inf
    assert ledger.epsilon(1.1e-6) < math.inf
    # a sampling error that no epsilon can pay for
    ledger = make()
    ledger.reserve(mu=0.1, allowance=1.1e-6)
    assert ledger.epsilon(1e-6) == math.inf


def test_nothing_spent_costs_nothing(make):
    ledger = make()
    assert ledger.epsilon(0.0) == ledger.epsilon(1e-6) == 0.0
    ledger.reserve(mu=0.0)
    assert ledger.epsilon(1e-6) == 0.0


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, "a", None])
def test_epsilon_needs_a_delta_that_means_something(make, delta):
    with pytest.raises(InvalidParameter, match="delta"):
        make().epsilon(delta)


# ---------------------------------------------------------------- the limit


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-5)])
@pytest.mark.parametrize("parts", [1, 3, 10])
@pytest.mark.repeated("epsilon", "delta")
def test_a_plan_that_fills_the_limit_exactly_fits_and_nothing_after_it(make, epsilon, delta, parts):
    allowance, failure = delta / 100, delta / 10  # what a limit sets aside for imperfect noise and for gates
    rest = (delta - failure - allowance) / (1 - failure)
    mu = gaussian_mu(epsilon, rest) / math.sqrt(parts)
    ledger = make(epsilon=epsilon, delta=delta)
    for part in range(parts):
        ledger.reserve(mu=mu, delta=failure * (part == 0), allowance=allowance / parts, epsilon=epsilon)
    full = ledger.entries()
    for spend in ({"mu": mu / 1000}, {"mu": 0.0, "delta": delta / 1000}, {"mu": 0.0, "allowance": delta / 1000}):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(**spend)
    assert ledger.entries() == full


def test_rounding_in_the_split_of_a_plan_does_not_make_it_an_overspend():
    draw = random.Random(1)
    for _ in range(rounds(50)):
        epsilon, delta = 10 ** draw.uniform(-2, -1), 10 ** draw.uniform(-12, -6)
        failure, shares = delta / 2, [draw.random() for _ in range(8)]
        mu = gaussian_mu(epsilon, (delta - failure - delta / 100) / (1 - failure))  # what is for noise is not for mu
        ledger = Ledger(epsilon=epsilon, delta=delta)
        ledger.reserve(mu=0.0, delta=failure)
        for share in shares:
            ledger.reserve(mu=mu * math.sqrt(share / sum(shares)))
        assert len(ledger) == 9


@pytest.mark.parametrize("spend", [(0.0, 0.5, 0.0), (0.02, 0.999, 1e-4), (0.15, 0.3, 0.3)])
def test_the_first_spend_fits_alone_whatever_it_needs_of_delta(make, spend):
    """A tenth is for gates and a hundredth for imperfect noise: by default, not for the first one."""
    epsilon, delta = 1.0, 1e-6
    mu, failures, noise = spend
    ledger = make(epsilon=epsilon, delta=delta)
    ledger.reserve(mu=mu, delta=failures * delta, allowance=noise * delta, epsilon=epsilon)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(mu=0.0, delta=delta * (0.51 if failures == 0.5 else 1e-6))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.repeated("seed")
def test_what_is_let_in_is_within_every_limit_and_only_what_passes_one_is_refused(make, seed):
    draw = random.Random(seed)
    ledger, admitted, refused = make(epsilon=1.0, delta=1e-6), [], 0
    failures, noise = 1e-7, 1e-8
    held = (1e-6 - failures - noise) / (1 - failures)

    def within(spends, slack):
        mu = math.sqrt(sum(m * m for m, _, _ in spends))
        lost, varied = 1 - math.prod(1 - d for _, d, _ in spends), (1 + math.e) * sum(v for _, _, v in spends)
        return (
            total_delta([(mu, 0.0, 0.0)], 1.0) <= held * slack and lost <= failures * slack and varied <= noise * slack
        )

    for _ in range(60):
        spend = draw.uniform(0, 0.12), draw.choice([0, 0, 3e-8]), draw.choice([0, 1e-12, 1e-9])
        try:
            record(ledger, [spend])
        except BudgetExceeded:
            refused += 1
            assert not within([*admitted, spend], 1 - 1e-6)
        else:
            admitted.append(spend)
    assert refused > 0
    assert within(admitted, 1 + 1e-8)
    assert total_delta(admitted, 1.0) <= 1e-6
    assert [(e.mu, e.delta, e.total_variation) for e in ledger.entries()] == admitted


def test_a_refusal_says_what_would_have_been_spent(make):
    ledger = make(epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetExceeded, match=r"'clinic' would be epsilon = 4\.88\d* at delta = 1e-06") as caught:
        ledger.reserve(mu=1.0, dataset="clinic")
    assert caught.value.fix
    assert len(ledger) == 0


def test_without_a_limit_everything_is_recorded(make):
    ledger = make()
    assert ledger.budget is None
    record(ledger, [(50.0, 1.0, 0.0)] * 3)
    assert len(ledger) == 3


@pytest.mark.parametrize(
    "limit",
    [
        {"epsilon": 1.0},
        {"delta": 1e-6},
        {"epsilon": 0.0, "delta": 1e-6},
        {"epsilon": -1.0, "delta": 1e-6},
        {"epsilon": math.inf, "delta": 1e-6},
        {"epsilon": math.nan, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": math.nan},
        {"epsilon": "1", "delta": 1e-6},
        {"epsilon": 1.0, "delta": [1e-6]},
        {"epsilon": True, "delta": 1e-6},
    ],
)
def test_half_a_limit_or_an_impossible_one_is_refused(tmp_path, limit):
    for path in (None, tmp_path / "account.sqlite"):
        with pytest.raises(InvalidParameter):
            Ledger(path, **limit)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [5, b"account", "a\0b", ["account"]])
def test_a_path_must_be_one(path):
    with pytest.raises(InvalidParameter, match="path"):
        Ledger(path)


# ---------------------------------------------------------------- copies


class Holder(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger


def test_copies_and_clones_are_the_same_account(make):
    ledger = make(epsilon=1.0, delta=1e-6)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"held": [ledger]})["held"][0] is ledger
    assert clone(ledger) is ledger
    assert clone(Holder(ledger)).ledger is ledger
    clone(clone(Holder(ledger))).ledger.reserve(mu=0.1)
    assert len(ledger) == 1


def test_a_pickle_holds_the_path_and_shares_the_account(tmp_path):
    ledger = Ledger(tmp_path / "account.sqlite", 1.0, 1e-6)
    ledger.reserve(mu=0.1, label="a label that stays here")
    pickled = pickle.dumps(Holder(ledger))
    assert b"a label that stays here" not in pickled
    twin = pickle.loads(pickled).ledger
    twin.reserve(mu=0.1)
    assert twin.budget == ledger.budget
    assert twin.entries() == ledger.entries()
    assert len(ledger) == 2


def test_a_ledger_in_memory_cannot_be_pickled():
    with pytest.raises(LedgerError, match=r"Ledger\(path="):
        pickle.dumps(Ledger())


def test_representations_show_public_figures(make):
    ledger = make(epsilon=1.0, delta=1e-6)
    assert "epsilon=1.0, delta=1e-06" in repr(ledger)
    ledger.reserve(mu=0.125, label="<script>alert()</script>")
    page = ledger._repr_html_()
    assert "0.125" in page
    assert "reserved" in page
    assert "<script>" not in page
    spent = f"  default: epsilon {ledger.epsilon(1e-6):.4g} of 1 spent at delta 1e-06"
    spent += ", 0 releases; charged as well: 1 not ended"
    assert str(ledger).splitlines() == [repr(ledger), spent]
    assert "nothing was spent" in str(make())
    for _ in range(50):
        ledger.reserve(mu=0.001)
    assert ledger._repr_html_().count("<tr") < 30


def test_spends_for_different_units_of_privacy_are_not_mixed():
    ledger = Ledger()
    ledger.reserve(mu=0.1, rows_per_unit=5)
    with pytest.raises(LedgerError, match="any 5 rows of one person"):
        ledger.reserve(mu=0.1)
    ledger.reserve(mu=0.1, dataset="other people")
    assert len(ledger) == 2
