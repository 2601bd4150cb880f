"""Rows that workers hold are compared and picked where they are, as in memory, to the last bit."""

import gc
import os
import signal
import time
from itertools import pairwise

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamed import DEDUPLICATORS, deduplicated, front, left, repeated_rows, table_of

from ppdp import make_column_map, make_pipeline
from ppdp.core.boundary import at_step
from ppdp.data.engine import external_join, tasks
from ppdp.data.engine.registry import opened_source
from ppdp.data.parallel import PIECE
from ppdp.exceptions import PrivacyRefusal, StageFailed
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import CategoryEncoder, Deduplicator, MeanImputer, MedianImputer, MinMaxScaler

engine = pytest.importorskip("ppdp.data.engine.dask")
dd = pytest.importorskip("dask.dataframe")

N, D = 2 * PIECE + 321, 3
ENDS = [0, 5, PIECE - 1, PIECE + 20_000, N - 1, N]
TABLE = repeated_rows(N, D)
SECRET = 777123.5

pytestmark = [
    pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of workers that are killed
]


def written(folder, table=TABLE):
    for number, (a, b) in enumerate(pairwise(ENDS)):
        pq.write_table(table.slice(a, b - a), folder / f"{number}.parquet", row_group_size=20_000)
    return folder


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.setattr(external_join, "FAR", 2**18)  # so that there are several


@pytest.mark.repeated("name", keep=2)
@pytest.mark.parametrize("name", DEDUPLICATORS)
def test_deduplicators_keep_the_rows_that_they_keep_in_memory(name, tmp_path, chosen, parts):
    assert deduplicated(DEDUPLICATORS[name], written(tmp_path)) == deduplicated(DEDUPLICATORS[name], TABLE)


def test_a_frame_is_deduplicated_where_it_is(chosen, parts):
    rows = repeated_rows(N, D, values=10**9 + 1)
    table = rows.slice(0, N - 5).to_pandas()
    table = type(table)({name: [*column[:-3], *column[:3]] for name, column in table.items()})
    frame = dd.from_pandas(table, npartitions=5, sort=False)
    pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), Deduplicator(), MeanImputer(), *last(max_iter=2), random_state=5)
    assert left(pipe.fit(frame, "y")) == left(pipe.fit(table.drop(columns="y"), table["y"]))


def last(**how):
    return (LogisticRegression(classes=(0, 1), **how),)


@pytest.mark.repeated("solver", keep=2)
@pytest.mark.parametrize("solver", ["poisson", "fixed-size", "epochs", "hidden"])
def test_batches_are_those_of_memory(solver, tmp_path, chosen):
    """Every step is a round of messages to all workers, so there are few."""
    how = {"batch_size": N // 4} | ({} if solver == "hidden" else {"max_iter": 2})
    table, pipe = table_of(N, D), make_pipeline(*front("noisy"), *last(solver=solver, **how), random_state=5)
    assert left(pipe.fit(written(tmp_path, table), "y")) == left(pipe.fit(table, "y"))


def test_empty_batches_are_batches(tmp_path, chosen):
    steps = *front("noisy"), *last(solver="poisson", batch_size=1, max_iter=4)
    pipe = make_pipeline(*steps, epsilon=0.1, random_state=5)
    table = table_of(N, D)
    assert left(pipe.fit(written(tmp_path, table), "y")) == left(pipe.fit(table, "y"))


@pytest.mark.parametrize("few", [0.2, 0.02], ids=["passes", "refuses"])
def test_a_gate_decides_as_in_memory(few, tmp_path, chosen):
    """It measures rows with gaps, a thirtieth of all, where they are."""
    table, found = table_of(N, D), []
    imputer = MeanImputer(max_missing=few, fit_mode="exact")
    for X in (written(tmp_path, table), table):
        pipe = make_pipeline(MinMaxScaler(ranges=(-3, 3)), imputer, GaussianMechanism(), random_state=5)
        try:
            found.append(left(pipe.fit(X, "y")))
        except PrivacyRefusal as refusal:
            found.append(str(refusal))
    assert found[0] == found[1]
    assert isinstance(found[0], str) == (few < 0.1)


def test_ranges_that_nobody_knows_are_found_where_rows_are(tmp_path, chosen):
    table = table_of(N, D)
    pipe = make_pipeline(MinMaxScaler(ranges="private"), MedianImputer(), *last(max_iter=2), random_state=5)
    assert left(pipe.fit(written(tmp_path, table), "y")) == left(pipe.fit(table, "y"))


def test_so_are_categories(tmp_path, chosen):
    cities = np.array(["Rome", "Oslo", "Paris"])[np.arange(N) % 3].astype(object)
    cities[:40] = [f"village {i // 4}" for i in range(40)]
    table = table_of(N, D).add_column(D, "city", pa.array(cities))
    columns = make_column_map(
        (CategoryEncoder("private", max_categories=4), ["city"]), (MinMaxScaler((0, 1)), ["x0", "x1", "x2"])
    )
    pipe = make_pipeline(columns, MeanImputer(), *last(max_iter=2), random_state=5)
    assert left(pipe.fit(written(tmp_path, table), "y")) == left(pipe.fit(table, "y"))
    assert pipe[0].found_ == {D: ("Oslo", "Paris", "Rome")}


def test_what_comes_here_are_bits_not_rows(tmp_path, chosen, monkeypatch):
    answers, results = [], engine.DaskWorkers.results

    def answered(*given):
        for result in results(*given):
            answers.append(len(cloudpickle.dumps(result)))
            yield result

    monkeypatch.setattr(engine.DaskWorkers, "results", answered)
    table = repeated_rows(N, D, values=10**9 + 1)
    deduplicated(Deduplicator(), written(tmp_path, pa.concat_tables([table.slice(0, N - 2), table.slice(0, 2)])))
    cells = 2 * 3 * D * (181 - 53) * 8  # shares of cells that every part of a table answers since there are 181
    assert N / 8 < sum(answers) < table.nbytes / 80 + cells


@pytest.mark.repeated("when")
@pytest.mark.parametrize("when", ["words", "rows"])
def test_a_worker_that_is_killed_while_rows_are_compared_changes_no_bit(when, tmp_path, chosen, parts, monkeypatch):
    seen, grouped = [], tasks.TaskSource.grouped

    def killing(self, *given):
        seen.append(self)
        if len(seen) == 1 + (when == "rows"):
            os.kill(next(iter(chosen.run(os.getpid).values())), signal.SIGKILL)
        return grouped(self, *given)

    monkeypatch.setattr(tasks.TaskSource, "grouped", killing)
    assert deduplicated(Deduplicator(), written(tmp_path)) == deduplicated(Deduplicator(), TABLE)
    assert len(seen) == 2


def test_errors_on_the_way_quote_no_cell(tmp_path, chosen):
    def failing(*_):
        raise ZeroDivisionError(SECRET)

    def found(first, table):
        return first, np.zeros((3, 1)), np.array([1, 3])

    source = opened_source(str(written(tmp_path)))
    for task, compare in ((failing, len), (found, failing)):
        with (
            pytest.raises(StageFailed, match="it stopped with ZeroDivisionError") as raised,
            at_step("a step"),
            source.grouped(task, ["x0"], 1, 2, compare) as (known, compared),
        ):
            list(known), list(compared)
        assert str(SECRET) not in str(raised.value)


def test_what_workers_held_goes_with_the_fit(tmp_path, chosen):
    def held(dask_scheduler=None):
        return [key for key, task in dask_scheduler.tasks.items() if task.state != "forgotten"]

    deduplicated(Deduplicator(), written(tmp_path))
    gc.collect()
    for _ in range(100):
        if not (left_behind := chosen.run_on_scheduler(held)):
            break
        time.sleep(0.1)
    assert left_behind == []
