"""As many rows as there may be, of an engine that delivers one block again and again: totals are merged, not rows."""

import copy
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from ppdp import make_pipeline
from ppdp.core.rounding import MOST_ROWS
from ppdp.data.engine import registry
from ppdp.data.engine.source import BlockSource
from ppdp.data.parallel import PIECE
from ppdp.mechanisms import GaussianMechanism, LogisticRegression, Ridge
from ppdp.transformers import MeanImputer, MinMaxScaler, NormClipper, StandardScaler

DELTA = 0.01 / MOST_ROWS


class Repeated(BlockSource):
    """A block that stands for 2^25 of them; results come as the total of all, or of several parts of them."""

    local = False

    def __init__(self, block, parts=0, schema=None):
        self.block, self.schema, self.n, self.parts = block, schema or block.schema, MOST_ROWS, parts

    def tables(self, names):
        raise AssertionError("nobody has the time to read so many rows")

    def over(self, task, names, width, merge=None):
        total = task(0, self._given(names))
        for _ in range(25 - self.parts):
            total = merge(total, copy.deepcopy(total))
        for _ in range(2**self.parts):
            yield copy.deepcopy(total)

    def held(self, task, names, width):
        return Repeated(task(0, self._given(names)), self.parts, self.schema)

    def _given(self, names):
        return self.block.select(names) if names else self.block


@pytest.fixture(autouse=True)
def an_engine_that_repeats(monkeypatch):
    found = SimpleNamespace(opened=lambda data: data if isinstance(data, Repeated) else None)
    monkeypatch.setattr(registry, "ENGINES", (found, *registry.ENGINES))


def block():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((PIECE, 3))
    y = (X.sum(axis=1) + rng.standard_normal(PIECE) > 0).astype(int)
    X[::7, 1] = np.nan
    return pa.table({**dict(zip("abc", X.T)), "y": y})


LEARNERS = {
    "descent": lambda: LogisticRegression((0, 1), max_iter=3),
    "moments": lambda: Ridge(y_range=(0, 1), solver="moments"),
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_model_of_all_rows_is_that_of_the_block_and_no_partition_shows(learner):
    def fitted(X, y, delta=DELTA):
        steps = MinMaxScaler(ranges=(-4, 4)), MeanImputer(), StandardScaler(), LEARNERS[learner]()
        return make_pipeline(*steps, epsilon=1.0, delta=delta, random_state=0).fit(X, y=y)

    table = block()
    one, other = (fitted(Repeated(table, results), "y") for results in (0, 4))
    coef = one[-1].coef_
    assert np.array_equal(coef, other[-1].coef_)
    np.testing.assert_allclose(coef, fitted(Repeated(table, 1), "y")[-1].coef_, rtol=1e-8)
    few = fitted(table.drop_columns("y"), np.asarray(table["y"]), delta=1e-6)
    slopes = [pipe[-1].coef_ / (4 * pipe["standardscaler"].scale_) for pipe in (one, few)]
    np.testing.assert_allclose(*slopes, atol=0.05)
    assert one.certificate_.verify()
    assert f'"n_rows": {MOST_ROWS}' in one.certificate_.to_json()


@pytest.mark.parametrize("query", ["sum", "count"])
def test_answers_are_off_by_noise_alone(query):
    X = np.rint(np.random.default_rng(0).uniform(-1, 1, (PIECE, 3)) * 2**10) / 2**10
    table = pa.table(dict(zip("abc", X.T)))
    exact = (X.sum(axis=0) if query == "sum" else PIECE) * 2.0**25

    def answer(parts):
        steps = NormClipper(2.0), GaussianMechanism(query=query)
        return make_pipeline(*steps, epsilon=1.0, delta=DELTA, random_state=0).fit(Repeated(table, parts))[-1]

    found, again = answer(0), answer(3)
    released = getattr(found, f"{query}_")
    assert np.array_equal(released, getattr(again, f"{query}_"))
    assert np.abs(released - exact).max() < 6 * found.noise_scale < 200
