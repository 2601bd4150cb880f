"""Rows that are compared in blocks stay or go as in memory, to the last bit; nothing of them is left on disk."""

import tempfile

import pyarrow as pa
import pytest
from streamed import DEDUPLICATORS, Split, deduplicated, repeated_rows

from ppdp.data.engine import external_join
from ppdp.data.parallel import PIECE
from ppdp.exceptions import RowsChanged
from ppdp.transformers import Deduplicator

N, D = 2 * PIECE + 321, 3
TABLE = repeated_rows(N, D)


class Changing(Split):
    """An engine whose rows have changed after so many passes."""

    def __init__(self, ends, passes=99, table=TABLE):
        super().__init__(table, ends)
        self.passes = passes

    def tables(self, names):
        self.passes -= 1
        for number, table in enumerate(super().tables(names)):
            if self.passes < 0 and number:
                raise RowsChanged("the rows changed between two passes.", fix="a copy.")
            yield table


@pytest.fixture
def read_as(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(external_join, "PART", 2**18)  # so that there are several, written several times
    monkeypatch.setattr(external_join, "WRITTEN", 2**20)

    def opened(source):
        monkeypatch.setattr("ppdp.data.deferred_input.opened_source", lambda given: source if given == "rows" else None)
        return "rows"

    yield opened
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")
class TestRowsThatAreCompared:
    @pytest.mark.repeated("name", keep=5)
    @pytest.mark.parametrize("name", DEDUPLICATORS)
    def test_stay_as_in_memory(self, name, read_as):
        whole = deduplicated(DEDUPLICATORS[name], TABLE)
        assert deduplicated(DEDUPLICATORS[name], read_as(Changing([0, 5, PIECE + 1, PIECE + 2, N]))) == whole

    def test_stay_however_they_are_split(self, read_as):
        whole = deduplicated(DEDUPLICATORS["unanimous"], TABLE)
        for ends in ([0, N], [*range(0, N, 5013), N]):
            assert deduplicated(DEDUPLICATORS["unanimous"], read_as(Changing(ends))) == whole

    @pytest.mark.parametrize("name", ["records", "a key, unanimous"])
    def test_are_found_where_few_are_equal(self, name, read_as):
        """Here two neighbours, there two in blocks far apart; no other block has one."""
        rows = repeated_rows(N, D, values=10**9 + 1)
        table = pa.concat_tables([rows.slice(0, 9), rows.slice(8, N - 10), rows.slice(3, 1)])
        whole = deduplicated(DEDUPLICATORS[name], table)
        assert deduplicated(DEDUPLICATORS[name], read_as(Changing([0, 5, PIECE, N], table=table))) == whole

    def test_are_read_once(self, read_as):
        whole = deduplicated(Deduplicator(), TABLE)
        assert deduplicated(Deduplicator(), read_as(Changing([0, PIECE, N], passes=1))) == whole

    def test_leave_nothing_where_they_change(self, read_as):
        with pytest.raises(RowsChanged):
            deduplicated(Deduplicator(), read_as(Changing([0, PIECE, N], passes=0)))
