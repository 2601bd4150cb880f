"""Stages say whether they need all rows in memory; what others fit has the same bits for any order, and in blocks."""

import numpy as np
import pytest
from streamed import stream_of

from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import MissingBound, UnsupportedOrder
from ppdp.testing import examples
from ppdp.transformers import MinMaxScaler, StandardScaler
from ppdp.transformers.base import Stage

ONE = Adjacency.replace().distance
STAGES = [one for one in examples() if isinstance(one, Stage)]
DOMAINS = [Domain(n_rows=3000, n_features=3, row_norm=2.0, max_missing=gaps) for gaps in (0, 400)]


def rows_of(domain, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (domain.n, domain.d))
    X[rng.permutation(domain.n)[: domain.missing_rows], rng.integers(domain.d)] = np.nan
    return Rows.of(X)


@pytest.mark.parametrize("stage", [one for one in STAGES if not one.in_memory], ids=repr)
@pytest.mark.parametrize("domain", DOMAINS, ids=["complete", "with gaps"])
@pytest.mark.repeated("domain")
def test_what_is_fitted_block_by_block_knows_no_order(stage, domain):
    try:
        ways = stage.ways(domain, ONE)
    except (UnsupportedOrder, MissingBound):  # needs labels, or stands elsewhere
        return
    rows = rows_of(domain)
    order = np.random.default_rng(1).permutation(domain.n)
    other = Rows(rows.X[order], None, rows.weight[order])
    for way in (way for way in ways if way.name == "exact"):
        stream = stream_of(rows)[0]
        found = stage.prepare(rows, way, domain)
        for one in (other, stream):
            again = stage.prepare(one, way, domain)
            for name, value in found.items():
                assert np.array_equal(np.asarray(value), np.asarray(again[name])), name
            for condition in way.conditions:
                assert condition.margin(one) == condition.margin(rows)


@pytest.mark.parametrize("stage", [one for one in STAGES if one.in_memory], ids=repr)
def test_the_description_says_so(stage):
    assert "in memory" in type(stage).__doc__


def test_it_may_depend_on_parameters():
    sorting = [StandardScaler(floor=False), MinMaxScaler(quantiles=(0.1, 0.9))]
    others = [StandardScaler(), MinMaxScaler(ranges=(0, 1))]
    assert [stage.in_memory for stage in sorting + others] == [True, True, False, False]
