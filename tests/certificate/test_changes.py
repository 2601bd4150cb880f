"""Certificates for neighbours that differ by a change of values."""

import json

import numpy as np
import pytest

from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivateSearchCV, load
from ppdp.certificate.replay.verify import verify
from ppdp.cli.main import main
from ppdp.exceptions import DomainMismatch, InvalidParameter, LedgerError
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.transformers import MinMaxScaler

CHANGE = Adjacency.change(coordinate=5.0)
X = np.linspace(0, 40, 400).reshape(100, 4)


def pipeline(mechanism=None, **facts):
    steps = [("range", MinMaxScaler(ranges=(0.0, 40.0))), ("release", mechanism or GaussianMechanism("rows"))]
    return Pipeline(steps, **{"adjacency": CHANGE, "epsilon": 2.0, "delta": 1e-6, **facts})


@pytest.fixture(scope="module")
def certificate():
    return pipeline().fit(X).certificate_


def test_it_verifies_and_says_first_what_it_does_not_protect(certificate):
    assert certificate.verify()
    first = str(certificate).splitlines()[0]
    assert "how far the values of any one row are off, by at most 5 in one column, not of anything else in it" in first
    assert "labels, gaps and categories are public and not protected" in str(certificate)
    assert "one person" not in str(certificate)
    assert "<title>UNCONDITIONAL (2, 1e-06) (for bounded changes only) certificate</title>" in certificate.to_html()


def test_a_loaded_release_says_so_as_well(tmp_path):
    mean = pipeline(GaussianMechanism()).fit(X)
    mean.export(tmp_path / "mean.zip")
    assert "it protects how far the values of any one row are off" in repr(load(tmp_path / "mean.zip"))


def test_noise_is_that_of_the_change(certificate):
    assert certificate.to_dict()["mechanism"]["sensitivity"] == pytest.approx(5.0 / 40 * 2, rel=1e-8)


@pytest.mark.parametrize("words", [Adjacency.replace().words, Adjacency.change(coordinate=6.0).words])
def test_no_fact_says_that_more_is_protected(certificate, words):
    forged = json.loads(json.dumps(certificate.to_dict()))
    (fact,) = (fact for fact in forged["facts"] if fact["name"] == "adjacency")
    fact["value"] = words
    assert any("adjacency" in problem for problem in verify(forged).problems)


def test_a_reviewer_may_require_more(certificate, tmp_path, capsys):
    path = tmp_path / "certificate.json"
    certificate.save(path)
    assert main(["verify", str(path)]) == 0
    assert (
        "protects how far the values of any one row are off, by at most 5 in one column; not" in capsys.readouterr().out
    )
    assert main(["verify", str(path), "--require", "record-level"]) == 1
    assert "it protects how far the values" in capsys.readouterr().out


@pytest.mark.parametrize("mechanism", [GaussianMechanism("count"), LaplaceMechanism("count")], ids=str)
def test_what_no_change_can_reach_needs_no_noise(mechanism):
    with pytest.raises(InvalidParameter, match="the same for all neighbouring datasets"):
        pipeline(mechanism).fit(X)


def test_pipeline_and_domain_may_not_disagree():
    with pytest.raises(InvalidParameter, match="say it in one place"):
        pipeline(domain=Domain(adjacency=Adjacency.change(l2=1.0))).fit(X)
    assert pipeline(adjacency=None, domain=Domain(adjacency=CHANGE)).fit(X).certificate_.verify()


def test_a_plan_protects_what_it_is_asked_for_not_the_less_that_the_pipeline_declares():
    pipe = pipeline(adjacency=None, domain=Domain(adjacency=CHANGE))
    for asked in (Adjacency.replace(), Adjacency.change(l2=1.0)):
        assert pipe.plan(Domain(n_rows=100, n_features=4, adjacency=asked)).domain.adjacency == asked
        with pytest.raises(DomainMismatch, match="adjacency"):
            pipe.fit(X)
    assert pipe.plan(Domain(n_rows=100, n_features=4)).domain.adjacency == CHANGE


def test_a_ledger_has_one_adjacency_and_says_so(tmp_path, capsys):
    ledger = Ledger(tmp_path / "ledger.db", epsilon=9.0, delta=1e-4)
    pipeline(ledger=ledger).fit(X)
    pipeline(ledger=Ledger(tmp_path / "ledger.db")).fit(X)
    assert {entry.adjacency for entry in ledger.entries()} == {CHANGE}
    assert main(["ledger", str(tmp_path / "ledger.db")]) == 0
    assert "default (protects how far the values of any one row are off, by at most 5" in capsys.readouterr().out
    for other in (Adjacency.replace(), Adjacency.change(coordinate=4.0)):
        with pytest.raises(LedgerError, match="adjacency"):
            pipeline(adjacency=other, ledger=ledger).fit(X)


def test_an_adjacency_is_not_searched_for():
    model, y = LogisticRegression(classes=(0, 1)), np.arange(100) % 2
    with pytest.raises(InvalidParameter, match="protects one thing"):
        PrivateSearchCV(pipeline(model, adjacency=None), {"adjacency": [None, CHANGE]}, epsilon=2.0).fit(X, y)
