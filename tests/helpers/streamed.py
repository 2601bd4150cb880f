"""Rows in blocks for tests of engines: a table, the first steps of a pipeline, an engine, and what a fit left."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from ppdp.data.engine.source import Source
from ppdp.transformers import MeanImputer, MinMaxScaler, StandardScaler


def table_of(n, d, seed=0, decimals=None):
    """Rows with gaps, and a label that the first column tells something of."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = X if decimals is None else X.round(decimals)
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(np.int64)
    X[rng.random((n, d)) < 0.01] = np.nan
    return pa.table({**{f"x{i}": X[:, i] for i in range(d)}, "y": y})


def front():
    return MinMaxScaler(ranges=(-3, 3)), MeanImputer(), StandardScaler()


def left(pipe):
    """Bits that were released, and what the certificate claims."""
    claim = {key: value for key, value in pipe.certificate_.to_dict().items() if key != "issued"}
    return {name: array.tobytes() for name, array in pipe.release_.arrays.items()}, claim


class Split(Source):
    """An engine of three lines: tables split anywhere."""

    def __init__(self, table, ends):
        self.schema, self.n, self.table, self.ends = table.schema, table.num_rows, table, ends

    def tables(self, names):
        return (self.table.slice(a, b - a).select(list(names)) for a, b in pairwise(self.ends))
