"""A cluster of Ray computes what an array gives, to the last bit; rows, ledger and noise stay where they are."""

import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import rounds
from streamed import front, left, repeated_rows, table_of

import ppdp
from ppdp import Ledger, make_pipeline
from ppdp.data.engine.registry import opened_source
from ppdp.data.parallel import PIECE
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter, InvalidValue, WorkerLost
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler

ray = pytest.importorskip("ray")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test
pytestmark = [
    pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of Ray's own parameters
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

N, D = 2 * PIECE + 4321, 3
TABLE = table_of(N, D)
ENDS = [0, 3, PIECE - 1, PIECE + 20_000, N - 1, N]
SECRET = 777123.5


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Started as a user's script starts it, without a cluster."""
    with ppdp.engine("ray"):
        yield


def tables(table=TABLE):
    return [table.slice(a, b - a) for a, b in pairwise(ENDS)]


def written(folder, table=TABLE):
    for number, part in enumerate(tables(table)):
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=20_000)
    return str(folder)


def dataset(table=TABLE):
    return ray.data.from_arrow(tables(table))


FITS = {
    "steps": lambda: (*front(), LogisticRegression(classes=(0, 1), max_iter=2)),
    "repeated": lambda: (MinMaxScaler((0, 1)), Deduplicator(), MeanImputer(), LogisticRegression((0, 1), max_iter=1)),
}


@pytest.mark.parametrize("name", FITS)
def test_files_and_datasets_give_the_bits_of_a_table(name, tmp_path):
    table = repeated_rows(N, D) if name == "repeated" else TABLE
    of_table, *others = (
        left(make_pipeline(*FITS[name](), random_state=5).fit(given, "y"))
        for given in (table, written(tmp_path, table), dataset(table))
    )
    assert others == [of_table, of_table]


def test_an_infinite_cell_is_refused_and_no_cell_is_said(capfd):
    table = TABLE.set_column(0, "x0", pa.array([np.inf, SECRET, *np.zeros(N - 2)]))
    with pytest.raises(InvalidValue) as caught:
        make_pipeline(*FITS["steps"]()).fit(dataset(table), "y")
    assert not any(str(SECRET) in text for text in (str(caught.value), *capfd.readouterr()))


def broken(batch):
    raise ValueError(SECRET)


def test_what_cannot_be_computed_is_refused_without_its_words_and_before_any_charge(tmp_path):
    ledger = Ledger(tmp_path / "spent.db", 3, 1e-5)
    pipe = make_pipeline(*FITS["steps"](), ledger=ledger, dataset="rows")
    with pytest.raises(InvalidInput, match="materialize") as caught:
        pipe.fit(dataset().map_batches(broken), "y")
    assert str(SECRET) not in str(caught.value)
    other = TABLE.set_column(0, "x0", pa.array(["a"] * N))
    with pytest.raises(DomainMismatch, match="types"):
        pipe.fit(ray.data.from_arrow([TABLE, other]), "y")
    assert len(ledger.entries()) == 0


def test_a_task_that_fails_on_a_worker_says_nothing_of_rows(tmp_path):
    def failing(first, block):
        raise ZeroDivisionError(block["x0"][0].as_py())

    with pytest.raises(Exception) as caught:
        list(opened_source(written(tmp_path)).over(failing, ["x0"], 1))
    assert type(caught.value).__name__ == "ZeroDivisionError"
    assert caught.value.args == ()


@pytest.mark.skipif(rounds(1) == 1, reason="Ray waits between its tries")
def test_a_worker_that_ends_in_every_try_is_lost(tmp_path):
    def ending(first, block):
        import os

        os._exit(1)

    with pytest.raises(WorkerLost):
        list(opened_source(written(tmp_path)).over(ending, ["x0"], 1))


def test_another_address_beside_an_open_cluster_is_refused():
    with pytest.raises(InvalidParameter, match="already"), ppdp.engine("ray", "127.0.0.1:1"):
        pass


def test_an_address_at_which_nothing_listens_is_refused_soon(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999", 8786):
        with pytest.raises(InvalidParameter, match="no cluster"), ppdp.engine("ray", address):
            pass
