"""Rows in a private file are what they were; it goes with the context, and what does not fit is said."""

import os
import shutil
import tempfile

import numpy as np
import pyarrow.dataset as ds
import pytest
from sklearn.base import clone
from streamed import front, left, stream_of, table_of

from ppdp import Ledger, make_pipeline
from ppdp.data.engine import disk_cache as module
from ppdp.data.engine.disk_cache import cached_on_disk
from ppdp.data.parallel import PIECE
from ppdp.data.rows import Rows
from ppdp.data.statistics import row_norms
from ppdp.exceptions import DiskFull
from ppdp.mechanisms import GaussianMechanism, LogisticRegression

NAMES = ("X", "y", "weight", "norms")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def rows_of(n, labelled=True, d=3):
    rng = np.random.default_rng(n)
    return Rows(rng.standard_normal((n, d)), rng.standard_normal(n) if labelled else None, rng.random(n))


def same(found, wanted):
    for name in NAMES:
        one, other = getattr(found, name), getattr(wanted, name)
        assert (one is other is None) or np.array_equal(one, other)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("n", [1, PIECE, 2 * PIECE + 5])
def test_blocks_and_single_rows_are_what_they_were(n, labelled):
    rows = rows_of(n, labelled)
    stream, passes = stream_of(rows)
    rng = np.random.default_rng(0)
    with cached_on_disk(stream, 2) as held:
        for _ in range(2):
            same(Rows.joined(list(held.over(lambda block: block.part(slice(None))))), rows)
        for size in {0, 1, n // 100, n // 3, n}:  # one by one, and in blocks
            batch = np.sort(rng.choice(n, size, replace=False))
            same(held.taken(batch), rows.part(batch))
    assert sum(passes) == n


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_last_rows_stand_in_the_place_of_the_first_if_they_fit(d):
    """Also where a map hands on what it was given."""
    rows = rows_of(2 * PIECE + 5)
    maps = {
        1: lambda block: block.with_X(block.X[:, :1]),
        2: lambda block: block.with_X(block.X[:, 1:] * 2),
        3: lambda block: block,
        5: lambda block: block.with_X(np.hstack([block.X, block.X[:, :2]])),
    }
    with cached_on_disk(stream_of(rows)[0], 2) as first, cached_on_disk(first.each(maps[d], d), 2, last=True) as held:
        assert (held.source.file == first.source.file) == (d <= 3)
        found = Rows.joined(list(held.over(lambda block: block.part(slice(None)))))
        wanted = maps[d](rows)
        same(found, Rows(wanted.X, wanted.y, wanted.weight, norms=row_norms(wanted.X)))
        behind = held.each(lambda block: block.with_X(2 * block.X), d)
        assert all(norms is None for norms in behind.over(lambda block: block.norms))


@pytest.mark.parametrize("labelled", [False, True])
def test_few_rows_are_held_in_memory(labelled, monkeypatch):
    rows = rows_of(PIECE + 5, labelled)
    for room in (0, 1):
        monkeypatch.setattr(module, "ROOM", 8 * rows.n * (rows.d + module.BESIDE) - 1 + room)
        stream, passes = stream_of(rows)
        with cached_on_disk(stream, 2) as held:
            assert isinstance(held, Rows) == bool(room)
            if room:
                same(held, rows)
        assert sum(passes) == rows.n


@pytest.mark.parametrize("model", [LogisticRegression(classes=(0, 1)), GaussianMechanism("mean")])
def test_of_few_rows_the_same_is_released_from_memory_and_from_a_file(model, monkeypatch):
    found = []
    for room in (0, 2**20):
        monkeypatch.setattr(module, "ROOM", room)
        pipe = make_pipeline(*front(), clone(model), random_state=0)
        found.append(left(pipe.fit(ds.dataset(table_of(3000, 3)), "y")))
    assert found[0] == found[1]


def test_what_one_pass_reads_is_not_kept():
    rows = rows_of(5)
    stream, passes = stream_of(rows)
    with cached_on_disk(stream, 1) as held:
        assert held is stream
    with cached_on_disk(rows, 9) as held:
        assert held is rows
    assert passes == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no disk that is always full")
@pytest.mark.parametrize("model", [LogisticRegression(classes=(0, 1)), GaussianMechanism("mean")])
def test_a_full_disk_is_a_typed_error_and_releases_nothing(model, monkeypatch):
    def opened(path, mode):
        return open("/dev/full" if mode == "r+b" else path, mode)

    monkeypatch.setattr(module, "open", opened, raising=False)
    pipe = make_pipeline(*front(), model, random_state=0)
    with pytest.raises(DiskFull, match=r"has no room for the rows.*TMPDIR"):
        pipe.fit(ds.dataset(table_of(1000, 3)), "y")
    assert not hasattr(pipe, "release_")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no disk that is always full")
def test_so_is_one_of_rows_that_can_be_read_only_once(monkeypatch):
    import pyarrow.parquet as pq

    writer = pq.ParquetWriter
    monkeypatch.setattr(pq, "ParquetWriter", lambda path, *given, **named: writer("/dev/full", *given, **named))
    with pytest.raises(DiskFull, match=r"stage 'entrance': the disk of temporary files"):
        make_pipeline(*front(), LogisticRegression(classes=(0, 1))).fit(table_of(1000, 3).to_reader(), "y")


def test_too_little_room_is_found_before_the_charge(monkeypatch):
    pipe = make_pipeline(*front(), LogisticRegression(classes=(0, 1)), ledger=Ledger(), dataset="rows")
    rows, needed = ds.dataset(table_of(1000, 3)), 8 * 1000 * (3 + module.BESIDE)
    for free, fits in ((needed - 1, False), (needed, True)):
        room = shutil.disk_usage("/")._replace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder, room=room: room)
        if not fits:
            with pytest.raises(DiskFull, match=r"has no room for the rows.*TMPDIR"):
                pipe.fit(rows, "y")
            assert not pipe.ledger.entries("rows")
    pipe.fit(rows, "y")
    assert len(pipe.ledger.entries("rows")) == 1
