"""What a page says was spent on its people, and what one more release would make of it, against real ledgers."""

import re
from dataclasses import replace

import numpy as np
import pytest
from documents import record_of, render_page
from pages import answers, mean
from scipy.stats import norm
from zoo import document

from ppdp import Ledger
from ppdp.certificate.pages import account
from ppdp.certificate.pages.account import room, total_of_two
from ppdp.certificate.pages.tradeoff import right_at, right_of_releases, times_in_100
from ppdp.exceptions import BudgetExceeded


def of(name):
    return answers(render_page(document(name)))


def test_what_was_spent_is_what_the_ledger_says_or_unknown():
    assert of("unconditional")["Spent on these people so far"].startswith("Unknown: no ledger.")
    assert "Nobody counts or refuses it" in of("unconditional")["Again next month?"]
    with Ledger(epsilon=3.0, delta=1e-5):
        mean()
        second = mean()
    spent, total = answers(second.to_html()), second.record.issued.ledger.epsilon
    shown = re.match(
        r"Under this name so far 2 releases, this one included: an attacker is right at most (\d+) times in 100, if"
        r" what the releases rest on is true\. Spent: ε = ([\d.]+) of 3 at δ = 10⁻⁵\. This release \(ε = 1 at δ = 10⁻⁶"
        r" in the headline\) is included\. If releases of any kind use up the limit, ε = 3: at most 96 in 100\."
        r" Not counted: later releases \(this page is of \d{4}-\d\d-\d\d: ask the issuer for the"
        r" newest\), and any not charged to “visits” in ledger \w+\.",
        spent["Spent on these people so far"],
    )
    assert total <= float(shown[2]) <= total * 1.001
    assert int(shown[1]) == times_in_100(right_at(total, 1e-5))
    assert spent["Again next month?"].startswith(
        "Yes, if whoever set the limit agrees (not recorded: ask the issuer) and it has room. One more like this adds"
    )
    assert "that stops a run over the limit" in spent["Again next month?"]
    with Ledger():
        found = answers(mean().to_html())
    assert found["Spent on these people so far"].startswith(
        "Under this name so far one release, this one: an attacker is right at most"
    )
    assert (
        "Spent: ε = 1 at δ = 10⁻⁶. That is the ε of the headline: do not add" in found["Spent on these people so far"]
    )
    assert "The ledger has no limit." in found["Spent on these people so far"]
    assert "refuses nothing before it has a limit" in found["Again next month?"]
    content = second.to_dict()
    content["issued"]["ledger"] |= {"epsilon": None, "limit": None}
    unknown = answers(render_page(content))["Spent on these people so far"]
    assert unknown.startswith(
        "Under this name so far 2 releases, this one included: an attacker may be right every time"
    )
    assert "no ε covers it at δ = 10⁻⁵" in unknown


def test_one_more_comes_to_what_the_ledger_then_says_or_is_refused(monkeypatch):
    with Ledger(epsilon=3.0, delta=1e-5):
        first, second = mean(), mean()
    said = answers(first.to_html())["Again next month?"]
    shown = re.match(
        r"Yes, if whoever set the limit agrees \(not recorded: ask the issuer\) and the newest page has room\. On"
        r" [\d-]+ the limit had room for (\d+) more like this\. After one more like this the total is at most"
        r" ε = ([\d.]+) of 3 at δ = 10⁻⁵, and an attacker is right at most (\d+) times in 100\. Several cost less than"
        r" their sum\.",
        said,
    )
    total, exact = second.record.issued.ledger.epsilon, norm.cdf(first.record.total.mu / np.sqrt(2))
    more = int(shown[1])
    assert total <= float(shown[2]) <= total * 1.001
    assert exact <= right_of_releases(first.record, 2) <= exact + 1e-6, "Gaussian losses add in squares"
    assert int(shown[3]) == times_in_100(right_of_releases(first.record, 2))
    with Ledger(epsilon=3.0, delta=1e-5) as filled:
        for _ in range(1 + more):
            mean()
        with pytest.raises(BudgetExceeded):
            mean()
    assert len(filled.entries()) == 1 + more, "as many as the first page said"
    alike = times_in_100(right_of_releases(first.record, more + 1))
    bound = f"up the limit, ε = 3: at most 96 in 100; at most {alike} if all {more + 1} are like this one. Not"
    assert bound in answers(first.to_html())["Spent on these people so far"]
    assumed = account.spent(replace(first.record, status="CONDITIONAL"), "the issuer")
    assert f"{bound.removesuffix('. Not')} (if what is assumed holds). Not counted" in " ".join(assumed.itertext())
    monkeypatch.setattr(account, "MOST_MORE", 3)
    assert room(first.record) == 3
    said = answers(render_page(first.to_dict()))
    assert "the limit had room for more than 3 more like this" in said["Again next month?"]
    assert "at most 96 in 100. Not counted" in said["Spent on these people so far"], "all of them is not known"
    assert total_of_two(second.record) is None, "what the first cost is not in it"
    with Ledger(epsilon=1.0, delta=1e-5):
        tight = mean()
        with pytest.raises(BudgetExceeded):
            mean()
    assert answers(tight.to_html())["Again next month?"].startswith("No: one more like it would exceed the limit.")
    assert "like this one" not in answers(tight.to_html())["Spent on these people so far"], "it is the only one"
    content = first.to_dict()
    content["issued"]["ledger"]["epsilon"] = 2.0  # the only one, but not this one
    assert total_of_two(record_of(content)) is None
