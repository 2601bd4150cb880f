"""What a page says was spent on its people, and what one more release would make of it, against real ledgers."""

import numpy as np
import pytest
from documents import record_of, render_page
from pages import answers, mean
from scipy.stats import norm
from zoo import document

from ppdp import Ledger
from ppdp.certificate.pages import interpretation
from ppdp.certificate.pages.interpretation import (
    ledger_view,
    right_at,
    right_of_releases,
    room,
    times_in_100,
    total_of_two,
)
from ppdp.core.figures import figure
from ppdp.exceptions import BudgetExceeded
from ppdp.privacy.gaussian import gaussian_epsilon
from ppdp.privacy.losses import Pure

SPENT, AGAIN = "Spent on these people so far", "Again next month?"


def up(value):
    return figure(value, upward=True).replace("\u00a0", " ")


def changed(certificate, **ledger):
    content = certificate.to_dict()
    content["issued"]["ledger"] |= ledger
    return content


def without_composition(certificate, **ledger):
    """As of an earlier version, or where not all of a ledger is Gaussian."""
    content = changed(certificate, **ledger)
    del content["issued"]["ledger"]["composed"]
    return content


def test_without_a_ledger_nothing_is_known_of_other_releases():
    assert ledger_view(record_of(document("unconditional"))) is None
    assert answers(render_page(document("unconditional")))[SPENT].startswith("Unknown: no ledger.")


def test_what_was_spent_is_what_the_ledger_says():
    with Ledger(epsilon=3.0, delta=1e-5):
        mean()
        second = mean()
    view, spent = ledger_view(second.record), answers(second.to_html())[SPENT]
    total = second.record.issued.ledger.epsilon
    exact = norm.cdf(second.record.issued.ledger.composed.mu / 2)
    assert (view.alone, view.right, view.right_at_limit) == (False, times_in_100(exact), 96)
    assert "of which this page knows only ε" not in spent
    for figures in ("2 releases", f"{view.right} times in 100", f"ε = {up(total)} of 3 at δ = 10⁻⁵", "96 times in 100"):
        assert figures in spent
    earlier = without_composition(second)
    assert ledger_view(record_of(earlier)).right == times_in_100(right_at(total, 1e-5))
    assert "of which this page knows only ε" in answers(render_page(earlier))[SPENT]
    unknown = without_composition(second, epsilon=None, limit=None)
    assert ledger_view(record_of(unknown)).right == 100
    assert "no ε covers it at δ = 10⁻⁵" in answers(render_page(unknown))[SPENT]


def test_a_ledger_of_one_release_without_a_limit():
    with Ledger():
        one = mean()
    view = ledger_view(one.record)
    assert (view.alone, view.right_at_limit, view.room) == (True, None, None)
    assert "ε = 1 at δ = 10⁻⁶. That is the ε of the headline" in answers(one.to_html())[SPENT]


def test_one_more_comes_to_what_the_ledger_then_says():
    with Ledger(epsilon=3.0, delta=1e-5):
        first, second = mean(), mean()
    view, page = ledger_view(first.record), answers(first.to_html())
    total, exact = second.record.issued.ledger.epsilon, norm.cdf(first.record.total.mu / np.sqrt(2))
    assert view.total == pytest.approx(total, rel=1e-3)
    assert view.total >= total * (1 - 1e-12)
    assert exact <= right_of_releases(first.record, 2) <= exact + 1e-6, "Gaussian losses add in squares"
    assert view.right_of_two == times_in_100(right_of_releases(first.record, 2))
    for figures in (f"{view.room} more", f"ε = {up(view.total)} of 3", f"{view.right_of_two} times in 100"):
        assert figures in page[AGAIN]
    with Ledger(epsilon=3.0, delta=1e-5) as filled:
        for _ in range(1 + view.room):
            mean()
        with pytest.raises(BudgetExceeded):
            mean()
    assert len(filled.entries()) == 1 + view.room, "as many as the first page said"
    assert view.right_of_this_kind == times_in_100(right_of_releases(first.record, view.room + 1))
    used_up = f"If this one and {view.room} more like it use it up, an attacker is right at most"
    others = f"if releases of other kinds use it up, {view.right_at_limit} (by ε and δ alone)."
    assert f"{used_up} {view.right_of_this_kind} times in 100; {others}" in page[SPENT]
    assert total_of_two(second.record) is None, "what the first cost is not in it"
    assert total_of_two(record_of(changed(first, epsilon=2.0))) is None, "the only one, but not this one"


def test_one_more_behind_others_is_composed_exactly():
    """Beside the sums: what the ledger then says, which may add up in another way."""
    with Ledger(epsilon=3.0, delta=1e-5) as ledger:
        mean()
        second = mean()
    view, page = ledger_view(second.record), answers(second.to_html())
    mean(ledger=ledger)
    assert view.exact is None
    assert view.exact_of_more == pytest.approx(ledger.epsilon(1e-5), rel=1e-9)
    assert view.exact_of_more < second.record.ledger.epsilon + second.record.epsilon
    for figures in (f"exactly composed, to ε = {up(view.exact_of_more)}", f"{view.right_of_more} times in 100"):
        assert figures in page[AGAIN]
    with Ledger(epsilon=3.0, delta=1e-5, accounting="renyi"):
        mean()
        second = mean()
    view, spent = ledger_view(second.record), answers(second.to_html())[SPENT]
    assert view.exact == pytest.approx(gaussian_epsilon(second.record.ledger.composed.mu, 1e-5), rel=1e-3)
    assert f"as the ledger adds up; exactly composed, ε = {up(view.exact)}." in spent


def test_failed_runs_stand_apart_from_releases():
    with Ledger(epsilon=3.0, delta=1e-5) as ledger:
        mean()
        ledger.settle(ledger.reserve(mu=0.1, dataset="visits"), "failed")
        third = mean()
    assert (
        "3 charged runs, this one included (2 released; 1 failed, refused or not ended,"
        in answers(third.to_html())[SPENT]
    )
    assert str(ledger).endswith("2 releases; charged as well: 1 failed")
    earlier = third.to_dict()
    del earlier["issued"]["ledger"]["released"]
    assert "this one included (failed ones count)" in answers(render_page(earlier))[SPENT]


def test_a_ledger_of_more_kinds_or_blocks_has_no_such_parameter():
    ledger = Ledger(epsilon=9.0, delta=1e-5, accounting="renyi")
    assert "composed" in ledger.position(ledger.reserve(mu=0.1), 1e-6)
    assert "composed" not in ledger.position(ledger.reserve(mu=0.0, parts=[Pure(epsilon=0.1)]), 1e-6)
    blocks = Ledger(epsilon=9.0, delta=1e-5)
    assert "composed" not in blocks.position(blocks.block("2020").reserve(mu=0.1), 1e-6)


def test_a_conditional_promise_has_its_if():
    with Ledger(epsilon=3.0, delta=1e-5):
        first = mean()
    page = answers(render_page({**document("conditional"), "issued": first["issued"]}))
    assert page[SPENT].count("if what is assumed holds") == 2


def test_of_many_more_it_is_not_counted_how_many(monkeypatch):
    with Ledger(epsilon=3.0, delta=1e-5):
        first = mean().record
    monkeypatch.setattr(interpretation, "MOST_MORE", 3)
    view = ledger_view(first)
    assert (view.room, view.right_of_this_kind) == (3, None), "all of them is not known"


def test_what_the_ledger_would_refuse_is_said_to_be_refused():
    with Ledger(epsilon=1.0, delta=1e-5):
        tight = mean()
        with pytest.raises(BudgetExceeded):
            mean()
    view = ledger_view(tight.record)
    assert view.refused
    assert (room(tight.record), view.right_of_this_kind) == (0, None)
    assert answers(tight.to_html())[AGAIN].startswith("No:")
