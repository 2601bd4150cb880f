"""Rows in blocks whose number is private: the bits of the fit in memory, and nothing tells how many there are."""

import sys
import tempfile
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from streamed import Split, front, left, partitions, table_of

from ppdp import Adjacency, Domain, Ledger, make_pipeline
from ppdp.core import progress
from ppdp.data.parallel import PIECE
from ppdp.exceptions import DomainMismatch, PpdpError, RowsChanged, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import GridDeduplicator, LSHDeduplicator, MeanImputer

N, D, CAP = PIECE + 4321, 3, 2 * PIECE + 777

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")


TABLE = table_of(N, D, decimals=1)

FITS = {
    "descent": lambda: (*front(), LogisticRegression(classes=(0, 1), max_iter=4)),
    "classes read": lambda: (*front(), LogisticRegression(max_iter=3)),
    "batches": lambda: (*front(), LogisticRegression(classes=(0, 1), solver="epochs", max_iter=2)),
    "grid": lambda: (*front()[:2], GridDeduplicator(), GaussianMechanism()),
    "lsh": lambda: (*front()[:2], LSHDeduplicator(), GaussianMechanism()),
    "histogram": lambda: (*front()[:2], GaussianMechanism("histogram")),
}


def pipeline(name="descent", **parameters):
    own = {"random_state": 5, "domain": Domain(n_rows=CAP), "epsilon": 2.0, "delta": 1e-6, **parameters}
    return make_pipeline(*FITS[name](), adjacency=Adjacency.add_remove(), **own)


PARTITIONS = partitions(N)


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.repeated("partition", keep=3)
def test_no_partition_shows_in_a_bit(partition):
    assert left(pipeline().fit(Split(TABLE, PARTITIONS[partition]), "y")) == left(pipeline().fit(TABLE, "y"))


@pytest.mark.parametrize("name", FITS)
def test_a_fit_on_files_is_the_fit_in_memory_and_nothing_stays(name, tmp_path, monkeypatch):
    (tmp_path / "rows").mkdir(), (tmp_path / "own").mkdir()
    for number, (a, b) in enumerate(pairwise(PARTITIONS["random"])):
        pq.write_table(TABLE.slice(a, b - a), tmp_path / "rows" / f"{number:02}.parquet")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "own"))
    assert left(pipeline(name).fit(tmp_path / "rows", "y")) == left(pipeline(name).fit(TABLE, "y"))
    assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.parametrize("n", [0, 1, PIECE])
@pytest.mark.parametrize("cap", [PIECE, PIECE + 1])
@pytest.mark.repeated("cap")
def test_few_rows_and_all_slots(n, cap):
    facts = {"domain": Domain(n_rows=cap)}
    whole = left(pipeline(**facts).fit(TABLE.slice(0, n), "y"))
    assert left(pipeline(**facts).fit(TABLE.slice(0, n).to_reader(1000), "y")) == whole


def test_rows_elsewhere_are_refused_before_anything_is_spent(monkeypatch):
    monkeypatch.setattr(Split, "local", False)
    ledger = Ledger(epsilon=9.0, delta=1e-5)
    with pytest.raises(UnsupportedOrder, match=r"'entrance'.*secret slots"):
        pipeline(ledger=ledger, dataset="d").fit(Split(TABLE, [0, N]), "y")
    assert ledger.entries() == ()


def test_more_rows_than_slots_are_refused_behind_the_charge():
    ledger = Ledger(epsilon=9.0, delta=1e-5)
    told = []
    for n in (1001, 1002):
        pipe = pipeline(ledger=ledger, dataset="d", domain=Domain(n_rows=1000))
        with pytest.raises(DomainMismatch, match="more rows than n_rows declares") as caught:
            pipe.fit(ds.dataset(TABLE.slice(0, n)), "y")
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert "100" not in told[0]
    assert len(ledger.entries()) == 2


def changing(*_):
    raise RowsChanged("the rows changed between two passes.", fix="fit a copy that nobody writes to.")


WRONG = {
    "a gap": lambda t: t.set_column(0, "x0", pa.array(np.full(len(t), np.inf))),
    "text": lambda t: t.set_column(0, "x0", pa.array(["a"] * len(t))),
    "an unknown label": lambda t: t.set_column(D, "y", pa.array(np.full(len(t), 7))),
    "no label": lambda t: t.drop_columns(["y"]),
    "no columns": lambda t: t.select(["y"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_no_error_tells_how_many_rows_there_are(what):
    told = []
    for n in (631, 637):
        with pytest.raises(PpdpError) as caught:
            pipeline().fit(ds.dataset(WRONG[what](TABLE.slice(0, n))), "y")
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]
    assert "63" not in told[0][1]


def test_nothing_public_tells_how_many_rows_there_are(capfd, caplog):
    told = []
    for n in (40, 41):
        pipe = pipeline().fit(Split(TABLE.slice(0, n), [0, n]), "y")
        claim = {key: value for key, value in left(pipe)[1].items() if key not in ("digest", "released", "diagnostics")}
        told.append(
            (
                claim,
                repr(pipe),
                repr(pipe.plan(Domain(n_rows=CAP, n_features=D))),
                {name: a.shape for name, a in pipe.release_.arrays.items()},
            )
        )
    assert told[0] == told[1]
    assert tuple(capfd.readouterr()) == ("", "")
    assert not caplog.records


@pytest.mark.parametrize("hidden", [True, False])
def test_the_bar_shows_no_private_number(hidden, monkeypatch):
    shown = []

    class Bar:
        def add_task(self, description, total):
            shown.append(total)

        def update(self, task, completed, description):
            shown.append(completed)

        def remove_task(self, task):
            pass

        def stop(self):
            pass

    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "_display", Bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    pipe = pipeline("classes read")
    if not hidden:
        pipe.set_params(adjacency=None, domain=None)
    pipe.fit(Split(TABLE, [0, N]), "y")
    assert CAP in shown if hidden else N in shown
    assert not hidden or set(shown) <= {0, PIECE, 2 * PIECE, CAP} | set(range(100))


def test_a_fit_that_fails_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(MeanImputer, "apply", changing)
    with pytest.raises(RowsChanged):
        pipeline().fit(Split(TABLE, [0, N]), "y")
    assert list(tmp_path.iterdir()) == []
