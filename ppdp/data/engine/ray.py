"""Datasets of Ray, and the workers of a Ray cluster."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import Any

import ppdp.data.engine.tasks as cluster
from ppdp.core.checks import library
from ppdp.core.private_files import private_folder
from ppdp.data.engine.partitions import common, form_of, objects_in, table_of
from ppdp.data.engine.source import BlockSource, aligned
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter

PATIENCE = 5.0  # seconds after which somebody who waits looks whether there is any worker


def opened(data: Any) -> BlockSource | None:
    """A source for a ``ray.data.Dataset``."""
    if type(data).__module__.partition(".")[0] != "ray":
        return None
    import ray.data

    if not isinstance(data, ray.data.Dataset):
        return None
    workers = cluster.chosen()
    return _of_dataset(data, workers if isinstance(workers, RayWorkers) else RayWorkers())


@contextmanager
def on_workers(address: str | None) -> Iterator[None]:
    """In this context files are read by the workers of the cluster that this process is connected to, or of another."""
    ray = _library()
    with ExitStack() as stack:
        if not ray.is_initialized():
            stack.enter_context(_connected(ray, address))
        elif address is not None:
            raise InvalidParameter("this process is connected to a cluster of Ray already.", fix="client=None.")
        stack.enter_context(cluster.read_by(RayWorkers()))
        yield


def _library() -> Any:
    return library("ray", "Ray", '"ppdp[ray]"')


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """A cluster at an address; or processes of its own, whose files no other user of the machine reads."""
    quiet, started = {"log_to_driver": False, "logging_level": logging.ERROR}, False
    with ExitStack() as stack:
        if address is None:
            here = {"include_dashboard": False, "_temp_dir": stack.enter_context(private_folder())}
        elif isinstance(address, str) and _answers(address):
            here = {"address": address}
        else:
            raise _not_there(address)
        stack.callback(ray.shutdown)
        with suppress(Exception):  # of a library that raises many kinds
            ray.init(**here, **quiet)
            started = True
        if not started:
            raise _not_there(address)
        yield


def _answers(address: str) -> bool:
    """Whether something listens there, if it is a host and a port: Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), cluster.ANSWER).close()
    except (OSError, OverflowError):
        return False
    return True


def _not_there(address: str | None) -> InvalidParameter:
    """The error of a cluster that does not answer, or that did not start."""
    if address is None:
        return InvalidParameter(
            "processes of Ray did not start.", fix="a shorter path in TMPDIR; or a cluster, by its address."
        )
    fix = '"host:port" or "ray://host:port" of a cluster that runs.'
    return InvalidParameter("no cluster of Ray answers there.", fix=fix)


class RayWorkers(cluster.Workers):
    """The workers of the cluster that this process is connected to; Ray runs tasks of a lost one again elsewhere."""

    def __init__(self) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ray = _library()
        nodes = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in ray.nodes() if node["Alive"]]
        asked = [_remote().options(num_cpus=0, scheduling_strategy=node) for node in nodes]
        kinds = set(self.results([one.remote(cluster.kind_here, 1) for one in asked]))
        if len(kinds) != 1:
            raise cluster.unlike() if kinds else cluster.lost("Ray")
        self.kind = kinds.pop()

    def at_once(self) -> int:
        return int(_library().cluster_resources().get("CPU", 1))

    def shared(self, content: bytes) -> Any:
        return _library().put(content)

    def task(self, function: Callable[..., Any], *given: Any) -> Any:
        return _remote().remote(function, 1, *given)

    def split_task(self, function: Callable[..., Any], parts: int, *given: Any) -> Sequence[Any]:
        return _remote().options(num_returns=parts).remote(function, parts, *given)

    def held(self, tasks: Sequence[Any]) -> Sequence[Any]:
        return tasks

    def results(self, tasks: Sequence[Any]) -> Iterator[Any]:
        ray, waiting = _library(), list(tasks)
        while waiting:
            ready, waiting = ray.wait(waiting, timeout=PATIENCE)
            if not ready and not ray.cluster_resources().get("CPU"):
                raise cluster.lost("Ray")
            for task in ready:
                yield _result(task)

    def let_go(self, tasks: Sequence[Any]) -> None:
        """Ray forgets what nothing refers to."""


@cache
def _remote() -> Any:
    return _library().remote(_returned)


def _returned(function: Callable[..., Any], parts: int, *given: Any) -> Any:
    """On a worker: what a function returns; where that is a list of parts, a failure stands for each of them."""
    found = function(*given)
    return [found] * parts if parts > 1 and isinstance(found, cluster.Failed) else found


def _result(task: Any) -> Any:
    """What a task returned. What Ray says of one that ended otherwise may quote rows."""
    ray = _library()
    with suppress(ray.exceptions.RayError):
        return ray.get(task)
    raise cluster.lost("Ray")


def _of_dataset(data: Any, workers: RayWorkers) -> cluster.TaskSource:
    """Blocks of a dataset, computed once; blocks of rows are put together of them."""
    parts = None
    with _unsaid(), suppress(Exception):  # of a user's functions, too
        bundles = data.materialize().iter_internal_ref_bundles()
        parts = [part for bundle in bundles for part in bundle.block_refs]
    if parts is None:
        raise InvalidInput("the dataset of Ray cannot be computed.", fix="dataset.materialize() says why.")
    starts, forms = cluster.looked_at(workers, parts, form_of)
    schema = common(forms) if forms else None
    if schema is None:
        words = "blocks of the dataset differ in the names or types of their columns, or none has rows."
        fix = "give all blocks the same types: dataset.map_batches(..., batch_format='pandas'), as pd.to_datetime does."
        raise DomainMismatch(words, fix=fix)
    jobs, ends = cluster.assembled(workers, parts, starts, partial(_tabled, schema))
    rows = cluster.TaskSource(workers, schema, jobs, ends)
    rows.untyped = objects_in(schema, forms)
    return rows


@contextmanager
def _unsaid() -> Iterator[None]:
    """Ray would print an error of a user's function, whose words may be of rows."""
    handlers = logging.getLogger("ray.data").handlers
    for handler in handlers:
        handler.addFilter(_none)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_none)


def _none(record: Any) -> bool:
    return False


def _tabled(schema: Any, cuts: Sequence[cluster.Cut], names: Sequence[str], parts: Sequence[Any]) -> Iterator[Any]:
    import pyarrow as pa

    wanted = pa.schema([schema.field(name) for name in names])
    return aligned(table_of(part, first, last, wanted) for (first, last, _), part in zip(cuts, parts))
