"""A plan says how often rows are read: as often as a fit from files reads them, unless training ends before."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zoo

from ppdp import Domain, Pipeline, make_pipeline
from ppdp.data.engine.disk_cache import _DiskCache
from ppdp.data.engine.source import BlockSource
from ppdp.mechanisms import GaussianMechanism, GaussianNB, LogisticRegression
from ppdp.transformers import Deduplicator, MinMaxScaler

X, Y = zoo.people()
TABLE = pa.table({**dict(X.fillna(0.1).items()), "y": Y})
FEWER = {
    "unconditional": 1,  # few rows are equal, which are then not compared
    "three rows each": 1,
    "a covariance": 1,
    "groups that differ": 2,
    "boosted targets": 4,  # histograms of all columns are one pass
    "Newton steps": 0,
    "distances from clusters": 6,
    "best columns": 6,
    "classes read": 4,
}
NAMES = (
    "best columns",
    "moments of classes",
    "nothing to do",
    "a report",
    "aligned, centred",
    "minimiser",
    "classes read",
)


@pytest.fixture
def passes(monkeypatch):
    """Where rows were read, a word for each time."""
    found = []
    for kind, name in ((BlockSource, "files"), (_DiskCache, "disk")):

        def over(self, *given, own=kind.over, name=name):
            found.append(name)
            return own(self, *given)

        monkeypatch.setattr(kind, "over", over)
    return found


@pytest.mark.repeated("name", keep=6)
@pytest.mark.parametrize("name", [*FEWER, *NAMES])
def test_no_fit_reads_more_often_than_its_plan_says(name, passes, tmp_path):
    steps, given = zoo.ZOO[name]
    pipe = Pipeline(steps, **{"epsilon": 20.0, "delta": 1e-6, **given})
    labels = ["y"] if getattr(steps[-1][1], "needs_y", False) else []
    names = [*X.columns, *labels]
    pq.write_table(TABLE.select(names), tmp_path / "rows.parquet")
    plan = pipe.plan(Domain(n_rows=len(X), feature_names=tuple(X.columns)))
    pipe.fit(tmp_path / "rows.parquet", *labels)
    assert plan.n_passes - FEWER.get(name, 0) <= len(passes) <= plan.n_passes
    assert passes.count("files") <= 1 + (
        name in ("classes read", "moments of classes")
    )  # two reads are not worth a copy


def test_a_plan_says_how_often_and_whether_in_blocks():
    domain, box = Domain(n_rows=10**6, n_features=20), MinMaxScaler(ranges=(-1, 1))
    assert "reads the rows once; in blocks, with no disk" in repr(
        make_pipeline(box, GaussianMechanism(), delta=1e-9).plan(domain)
    )
    assert make_pipeline(box, GaussianNB(classes=(0, 1)), delta=1e-9).plan(domain).n_passes == 2
    plan = make_pipeline(box, Deduplicator(), LogisticRegression(classes=(0, 1)), delta=1e-9).plan(domain)
    assert plan.mechanism.question.steps == 12
    assert plan.n_passes == 1 + 2 + 1 + 15  # written, compared, written as the last step sees them, and trained on
    assert "reads the rows 19 times at most, 15 of them for logisticregression; in blocks, with 0.2 GB" in repr(plan)
