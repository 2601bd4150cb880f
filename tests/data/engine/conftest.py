"""A cluster of two processes for all tests of engines.

Workers, and those in place of killed ones, are forked from a process that has imported what they need: that takes them
two seconds of processor time each, as often as one is started. Left to itself a cluster looks at itself so often that
it takes a fifth of a processor until the last test ends.
"""

import multiprocessing

import pytest

import ppdp
from ppdp.data.engine import dask

RARELY = dask.RARELY | {
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.worker.memory.monitor-interval": "10s",
}
NEEDED = ["distributed", "dask.dataframe", "ppdp.data.engine.dask", "ppdp.mechanisms", "ppdp.transformers"]


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver", **RARELY}):
        distributed.utils.get_mp_context()  # which has a list of its own, once
        multiprocessing.set_forkserver_preload(NEEDED)
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as own,
            distributed.Client(own) as client,
        ):
            yield client


@pytest.fixture
def chosen(client):
    with ppdp.engine("dask", client):
        yield client
