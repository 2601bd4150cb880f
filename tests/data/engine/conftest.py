"""A cluster of two processes for all tests of engines."""

import pytest

import ppdp


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as own,
        distributed.Client(own) as client,
    ):
        yield client


@pytest.fixture
def chosen(client):
    with ppdp.engine("dask", client):
        yield client
