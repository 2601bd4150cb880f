"""Rows that are compared in blocks stay or go as in memory, to the last bit; nothing of them is left on disk."""

import tempfile

import numpy as np
import pyarrow as pa
import pytest
from streamed import Split, left

from ppdp import make_pipeline
from ppdp.data.engine import spilled
from ppdp.data.parallel import PIECE
from ppdp.exceptions import RowsChanged, UnsupportedOrder
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import Deduplicator, GridDeduplicator, LSHDeduplicator, MeanImputer, MinMaxScaler, RowMap

N, D = 2 * PIECE + 321, 3
RULES = {
    "records": Deduplicator(),
    "unanimous": Deduplicator(labels="unanimous"),
    "a key": Deduplicator(key=[0, 1], labels="first"),
    "a key, unanimous": Deduplicator(key=[0, 1], labels="unanimous"),
    "raw": Deduplicator(keys="raw"),
    "centre": GridDeduplicator(cell=0.7, labels="first"),
    "cells, unanimous": GridDeduplicator(cell=0.7, keep="first", labels="unanimous"),
    "angles": LSHDeduplicator(bands=2, rows=8, mode="simhash"),
    "window": LSHDeduplicator(bands=2, rows=3, rule="window"),
}


def rows():
    """Rows of which many are equal, near and far from each other, with gaps and zeros of both signs."""
    rng = np.random.default_rng(0)
    X = rng.integers(-20, 21, (N, D)) / 20
    X[rng.random((N, D)) < 0.02] = np.nan
    X[rng.random((N, D)) < 0.05] = -0.0
    columns = {f"x{i}": pa.array(X[:, i], from_pandas=True) for i in range(D)}
    return pa.table({**columns, "y": rng.integers(0, 2, N)})


TABLE = rows()


class Changing(Split):
    """An engine whose rows have changed after so many passes, or that stands elsewhere."""

    def __init__(self, ends, passes=99, local=True):
        super().__init__(TABLE, ends)
        self.passes, self.local = passes, local

    def tables(self, names):
        self.passes -= 1
        for number, table in enumerate(super().tables(names)):
            if self.passes < 0 and number:
                raise RowsChanged("the rows changed between two passes.", fix="a copy.")
            yield table


def fitted(stage, given):
    front = RowMap(np.tanh, out_norm=2.0) if getattr(stage, "keys", "") == "raw" else MinMaxScaler(ranges=(-1, 1))
    model = LogisticRegression(classes=(0, 1), max_iter=2)
    return left(make_pipeline(front, stage, MeanImputer(), model, epsilon=20.0, random_state=5).fit(given, "y"))


@pytest.fixture
def read_as(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spilled, "PART", 2**18)  # so that there are several, written several times
    monkeypatch.setattr(spilled, "WRITTEN", 2**20)

    def opened(source):
        monkeypatch.setattr("ppdp.data.delivered.opened_source", lambda given: source if given == "rows" else None)
        return "rows"

    yield opened
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")
class TestRowsThatAreCompared:
    @pytest.mark.parametrize("name", RULES)
    def test_stay_as_in_memory(self, name, read_as):
        whole = fitted(RULES[name], TABLE)
        assert fitted(RULES[name], read_as(Changing([0, 5, PIECE + 1, PIECE + 2, N]))) == whole

    def test_stay_however_they_are_split(self, read_as):
        whole = fitted(RULES["unanimous"], TABLE)
        for ends in ([0, N], [*range(0, N, 5013), N]):
            assert fitted(RULES["unanimous"], read_as(Changing(ends))) == whole

    def test_are_read_once(self, read_as):
        assert fitted(Deduplicator(), read_as(Changing([0, PIECE, N], passes=1))) == fitted(Deduplicator(), TABLE)

    def test_leave_nothing_where_they_change(self, read_as):
        with pytest.raises(RowsChanged):
            fitted(Deduplicator(), read_as(Changing([0, PIECE, N], passes=0)))

    def test_do_not_come_from_elsewhere(self, read_as):
        with pytest.raises(UnsupportedOrder, match="stage 'deduplicator': it compares rows on the disk"):
            fitted(Deduplicator(), read_as(Changing([0, N], local=False)))
