"""How long a fit will take is found by generated rows: whatever the steps, and at no charge."""

import pytest
import zoo

from ppdp import Domain, Ledger, Pipeline, make_pipeline
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline import expected
from ppdp.transformers import CategoryEncoder, MeanImputer, MinMaxScaler

NAMES = (
    "unconditional",
    "private categories",
    "groups of columns",
    "persons",
    "classes read",
    "epochs",
    "medians",
    "rows",
)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(expected, "ENTRIES", 3000)
    monkeypatch.setattr(expected, "LEAST", 200)
    monkeypatch.setattr(expected, "RUNS", 1)


@pytest.mark.repeated("name", keep=4)
@pytest.mark.parametrize("name", NAMES)
def test_of_every_kind_of_step(name):
    steps, given = zoo.ZOO[name]
    pipe = Pipeline(steps, **{"epsilon": 20.0, "delta": 1e-6, **given})
    found = pipe.fit_time(Domain(n_rows=5000, feature_names=("a", "b", "c")))
    assert min(found.in_memory) > 0
    assert (found.in_blocks is None) == (name in ("medians", "rows", "persons"))
    assert found.per_number > 0
    assert "ns for each row, column and pass" in repr(found)


def test_of_more_rows_than_there_is_memory_nothing_is_charged(tmp_path):
    steps = MinMaxScaler(ranges=(-4, 4)), MeanImputer(), LogisticRegression(classes=(0, 1))
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    pipe = make_pipeline(*steps, delta=1e-11, ledger=ledger, dataset="d")
    domain = Domain(n_rows=10**11, n_features=20)
    found = pipe.fit_time(domain)
    assert found.in_memory is None
    assert found.n_passes == pipe.plan(domain).n_passes
    assert min(found.in_blocks) > 0
    assert ledger.entries() == ()
    assert not hasattr(pipe, "release_")


def test_rows_of_categories_alone_may_have_gaps():
    pipe = make_pipeline(CategoryEncoder(["a", "b"], strategy="most_frequent"), GaussianMechanism())
    assert pipe.fit_time(Domain(n_rows=1000, n_features=2)).in_blocks is not None
