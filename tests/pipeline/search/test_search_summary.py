"""The summary of a search: public, checked by itself, and no word more than is true."""

from dataclasses import replace

import pytest
import searches
from searches import pipeline, search

from ppdp import PrivacyLoss
from ppdp.mechanisms import LogisticRegression

data = searches.data  # pytest finds a fixture by its name in the test's own module


def test_is_public_and_checks_itself(data):
    summary = search().fit(*data).summary_
    document = summary.to_dict()
    assert (document["epsilon"], document["delta"], document["best_index"]) == (2.0, 1e-6, summary.best_index)
    assert document["parameters"][0] == {"clip__max_norm": "0.001", "model__fit_intercept": "False"}
    assert repr(summary).startswith("SEARCH: UNCONDITIONAL")
    cheaper = replace(summary.plan, fits=tuple(replace(f, loss=PrivacyLoss(1.0)) for f in summary.plan.fits))
    assert summary.verify()
    assert not replace(summary, plan=cheaper).verify()
    assert not replace(summary, reasons=("something is assumed",)).verify()


def test_of_one_candidate_on_somebody_elses_word(data, monkeypatch):
    def assumptions(self):
        return () if self.max_coef_norm == "auto" else (("a sensitivity", "somebody says so"),)

    monkeypatch.setattr(LogisticRegression, "assumptions", assumptions)
    models = {"model": [LogisticRegression((0, 1), max_coef_norm=norm, max_iter=5) for norm in ("auto", 1e-9)]}
    summary = search(grid=models).fit(*data).summary_
    assert (summary.status, summary.reasons) == ("CONDITIONAL", ("mechanism: somebody says so",))
    assert summary.verify()


@pytest.mark.parametrize("invalid", ["error", "repair"])
def test_says_what_is_not_covered(data, invalid):
    found = search(pipeline(on_invalid=invalid)).fit(*data)
    certificate = found.best_estimator_.certificate_
    assert list(found.summary_.not_covered) == certificate["not_covered"] == found.summary_.to_dict()["not_covered"]
    assert any("exceptions" in words for words in found.summary_.not_covered) == (invalid == "error")
    mixed = search(pipeline(), {"on_invalid": ["repair", invalid]}).fit(*data)
    assert mixed.summary_.invalid == invalid
