"""Rows in blocks for tests of engines: a table, the first steps of a pipeline, an engine, and what a fit left."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from ppdp import make_pipeline
from ppdp import transformers as S
from ppdp.data.engine.source import BlockSource
from ppdp.data.parallel import PIECE
from ppdp.data.stream import Stream
from ppdp.mechanisms import LogisticRegression

DEDUPLICATORS = {
    "records": S.Deduplicator(),
    "unanimous": S.Deduplicator(label_rule="unanimous"),
    "a key": S.Deduplicator(subset=[0, 1], label_rule="first"),
    "a key, unanimous": S.Deduplicator(subset=[0, 1], label_rule="unanimous"),
    "raw": S.Deduplicator(compare="raw"),
    "centre": S.GridDeduplicator(cell_width=0.7, label_rule="first"),
    "cells, unanimous": S.GridDeduplicator(cell_width=0.7, keep="first", label_rule="unanimous"),
    "angles": S.LSHDeduplicator(bands=2, rows_per_band=8, mode="simhash"),
    "window": S.LSHDeduplicator(bands=2, rows_per_band=3, rule="window"),
}


def table_of(n, d, seed=0, decimals=None):
    """Rows with gaps, and a label that the first column tells something of."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = X if decimals is None else X.round(decimals)
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(np.int64)
    X[rng.random((n, d)) < 0.01] = np.nan
    return pa.table({**{f"x{i}": X[:, i] for i in range(d)}, "y": y})


def partitions(n, many=1013):
    """Ends of blocks of so many rows, of every kind."""
    random = (np.sort(np.random.default_rng(seed).integers(0, n, 9)).tolist() for seed in (1, 2))
    return {
        "one": [0, n],
        "aligned": [*range(0, n, PIECE), n],
        "off by one": [*(start + one for start, one in zip(range(0, n - 1, PIECE), (0, 1, -1))), n],
        "thin": [0, 1, 2, 3, n - 1, n, n],
        "many": [*range(0, n, many), n],
        **{name: [0, *ends, n] for name, ends in zip(("random", "again"), random)},
    }


def front(statistics="auto"):
    return S.MinMaxScaler(ranges=(-3, 3)), S.MeanImputer(fit_mode=statistics), S.StandardScaler(fit_mode=statistics)


def left(pipe):
    """Bits that were released, and what the certificate claims."""
    claim = {key: value for key, value in pipe.certificate_.to_dict().items() if key != "issued"}
    return {name: array.tobytes() for name, array in pipe.release_.arrays.items()}, claim


class Split(BlockSource):
    """An engine of three lines: tables split anywhere."""

    def __init__(self, table, ends):
        self.schema, self.n, self.table, self.ends = table.schema, table.num_rows, table, ends

    def tables(self, names):
        return (self.table.slice(a, b - a).select(list(names)) for a, b in pairwise(self.ends))


def stream_of(rows):
    """The rows as a stream in blocks, and a list to which every pass adds how many it has read."""
    source, passes = Split(pa.table({"row": np.arange(rows.n)}), [0, rows.n // 2, rows.n]), []

    def read(table):
        passes.append(table.num_rows)
        return rows.part(table["row"].to_numpy())

    return Stream(source, ["row"], rows.n, rows.d, (read,)), passes


def repeated_rows(n, d, values=41):
    """Rows of which many are equal, near and far from each other, with gaps and zeros of both signs."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, (n, d)) / (values // 2) - 1
    X[rng.random((n, d)) < 0.02] = np.nan
    X[rng.random((n, d)) < 0.05] = -0.0
    columns = {f"x{i}": pa.array(X[:, i], from_pandas=True) for i in range(d)}
    return pa.table({**columns, "y": rng.integers(0, 2, n)})


def deduplicated(stage, given):
    """What a fit left that compares rows so."""
    front = (
        S.RowMap(np.tanh, out_norm=2.0) if getattr(stage, "compare", "") == "raw" else S.MinMaxScaler(ranges=(-1, 1))
    )
    model = LogisticRegression(classes=(0, 1), max_iter=2)
    return left(
        make_pipeline(front, stage, S.MeanImputer(), model, epsilon=20.0, random_state=5, diagnostics=None).fit(
            given, "y"
        )
    )
