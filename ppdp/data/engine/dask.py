"""Frames of Dask, and the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Thread
from typing import Any

import ppdp.data.engine.tasks as cluster
from ppdp.core.checks import library
from ppdp.core.private_files import private_folder
from ppdp.data.engine.partitions import common, form_of, objects_in, schema_of, table_of, untyped
from ppdp.data.engine.source import BlockSource, aligned
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter, PpdpError, RowsChanged

PATIENCE = 60.0  # seconds without any worker
SILENCE = 8.0  # seconds in which one that has work does
GONE = 4.0  # seconds in which a connection that is lost comes back
PAUSE = 0.001
SMALL = 2**14  # bytes that go with each task: what has a place among the workers draws all tasks to it
# Of a cluster that nobody else uses: by default it would look at itself for a tenth of the time of two processors.
RARELY = {"distributed.admin.tick.interval": "1s", "distributed.worker.profile.enabled": False}


def client_class() -> Any:
    """Of Dask, if it is installed."""
    return library("distributed", "Dask", '"ppdp[dask]"').Client


@contextmanager
def connected(Client: Any, address: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of processes of its own."""
    import dask

    address = address or dask.config.get("scheduler-address", None)
    if address is None and getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker runs the script
        raise _unguarded()
    client = None
    with ExitStack() as stack:
        try:
            if address is None:
                client = _of_own(Client, stack.enter_context(private_folder()))  # for what does not fit
            elif not isinstance(address, str) or _answers(address):
                client = Client(address, timeout=cluster.ANSWER, set_as_default=False)
        except PpdpError:
            raise
        except Exception as error:  # of whatever else listens there
            if address is None and str(error).startswith("Nanny"):
                raise _unguarded() from None
        if client is None:
            raise InvalidParameter("no scheduler of Dask answers there.", fix='client="tcp://host:port", or a Client.')
        stack.enter_context(client)
        stack.enter_context(client.as_current())
        yield client


def _answers(address: str) -> bool:
    """Whether a scheduler does, soon: a client that was made for none would stay, and be the process's current one."""
    import dask
    from distributed import Security, rpc

    if dask.config.get("distributed.client.security-loader", None) is not None:
        return True  # what it loads belongs to the client

    async def asked() -> bool:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
            return bool((await scheduler.identity())["type"] == "Scheduler")

    async def in_time() -> bool:
        return await asyncio.wait_for(asked(), cluster.ANSWER)

    with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own in this one
        try:
            return thread.submit(asyncio.run, in_time()).result()
        except Exception:
            return False


def _of_own(Client: Any, folder: str) -> Any:
    """A client of processes that are started for it, and write to a folder what exceeds their memory."""
    import dask

    environment = dict(dask.config.get("distributed.nanny.pre-spawn-environ", {}))
    environment.pop("MALLOC_TRIM_THRESHOLD_", None)  # with it every large array is mapped anew: twice the time
    here = {"distributed.nanny.pre-spawn-environ": environment, "temporary-directory": folder, **RARELY}
    with dask.config.set(here):
        return Client(dashboard_address="127.0.0.1:0", local_directory=folder, set_as_default=False)


def _unguarded() -> InvalidParameter:
    return InvalidParameter(
        "processes of Dask did not start, perhaps because each runs the script from its first line.",
        fix='if __name__ == "__main__": in front of what a script in a file computes; or workers that run, by their'
        " address.",
    )


def open_client() -> Any:
    """The client that a user has opened; None if there is none, or it has no connection."""
    try:
        client = client_class().current()
    except ValueError:
        return None
    return client if client.status == "running" else None


def current_client() -> Any:
    """The same, where one is needed."""
    found = open_client()
    if found is None:
        raise InvalidInput("no client of Dask is open to compute a frame.", fix='with ppdp.engine("dask"): ...')
    return found


def patiently(client: Any, ready: Any) -> Iterator[Any]:
    """What is ready, as it is; nobody waits for ever where no worker is, or no scheduler answers."""
    watch = _Watch(client)
    while not ready.is_empty():
        yield from ready.next_batch(block=False)
        time.sleep(PAUSE)
        watch.look()


class _Watch:
    """Whoever waits for a cluster looks again and again, and is told when there is nothing to wait for."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.asked = self.heard = self.seen = time.monotonic()

    def look(self) -> None:
        """Ask, once in a second, whether there is a scheduler, and any worker."""
        if time.monotonic() - self.asked < 1:
            return
        workers = _processors(self.client)
        self.asked = now = time.monotonic()
        self.heard, self.seen = (now if workers is not None else self.heard), (now if workers else self.seen)
        patience = SILENCE if self.client.status == "running" else GONE
        if now - self.heard > patience or now - self.seen > PATIENCE:
            raise cluster.lost("Dask")


def kind_of(client: Any) -> tuple[str, ...]:
    """What all workers are."""
    found: set[tuple[str, ...]] = set()

    def ask() -> None:
        with suppress(Exception):  # of a connection that is gone, or of workers without this file
            client.wait_for_workers(1, PATIENCE)
            found.update(client.run(cluster.kind_here).values())

    watch, asking = _Watch(client), Thread(target=ask, daemon=True)  # Dask would wait for ever for an answer
    asking.start()
    while asking.is_alive():
        asking.join(PAUSE)
        watch.look()
    if len(found) != 1:
        raise cluster.unlike() if found else cluster.lost("Dask")
    return found.pop()


def _processors(client: Any) -> int | None:
    """How many tasks workers run at once, if a scheduler says so."""
    try:
        running = client.status == "running"
        return sum(client.sync(client.scheduler.ncores, callback_timeout=SILENCE).values()) if running else None
    except Exception:  # of a connection that is gone
        return None


def opened(data: Any) -> BlockSource | None:
    """A source for a ``dask.dataframe.DataFrame``."""
    if type(data).__module__.partition(".")[0] != "dask":
        return None
    import dask.dataframe as dd

    if not isinstance(data, dd.DataFrame):
        return None
    workers = cluster.chosen()
    return _of_frame(data, workers if isinstance(workers, DaskWorkers) else DaskWorkers(current_client()))


@contextmanager
def on_workers(client: Any) -> Iterator[None]:
    """In this context files are read by the workers of a client, or of one at an address."""
    Client = client_class()
    with ExitStack() as stack:
        if not isinstance(client, Client):
            client = (client is None and open_client()) or stack.enter_context(connected(Client, client))
        stack.enter_context(cluster.read_by(DaskWorkers(client)))
        yield


class DaskWorkers(cluster.Workers):
    """The workers of a client."""

    def __init__(self, client: Any) -> None:
        self.client, self.kind = client, kind_of(client)

    def at_once(self) -> int:
        return _processors(self.client) or 1

    def shared(self, content: bytes) -> Any:
        from dask import delayed

        return delayed(content, pure=False) if len(content) > SMALL else content

    def task(self, function: Callable[..., Any], *given: Any) -> Any:
        from dask import delayed

        return delayed(function, pure=False)(*given)

    def split_task(self, function: Callable[..., Any], parts: int, *given: Any) -> Sequence[Any]:
        [whole] = self.held([self.task(function, *given)])
        return [self.task(_item, whole, part) for part in range(parts)]

    def held(self, tasks: Sequence[Any]) -> Sequence[Any]:
        return self.client.persist(tasks)

    def results(self, tasks: Sequence[Any]) -> Iterator[Any]:
        from distributed import as_completed

        if self.client.status != "running":
            raise cluster.lost("Dask")
        futures = self.client.compute(tasks)
        try:
            for future, result in patiently(self.client, as_completed(futures, self.client.loop, True, False)):
                if future.status == "error" and type(future.exception()).__name__ != "KilledWorker":
                    raise InvalidInput("a partition of the frame cannot be computed.", fix="frame.compute() says why.")
                if future.status != "finished":
                    raise cluster.lost("Dask")
                yield result
        finally:
            for future in futures:
                future.release()

    def let_go(self, tasks: Sequence[Any]) -> None:
        from distributed import futures_of

        for future in futures_of(tasks):
            future.release()


def _item(found: Any, which: int) -> Any:
    return found if isinstance(found, cluster.Failed) else found[which]


def _of_frame(frame: Any, workers: DaskWorkers) -> cluster.TaskSource:
    """Partitions of a frame, whose lengths are computed first: blocks are put together of them."""
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidInput("columns must have names, all different.", fix="frame.columns = [...].")
    given, parts = schema_of(frame.dtypes.items()), frame.to_delayed()
    starts, forms = cluster.looked_at(workers, parts, form_of)
    schema = common(forms, given)
    if schema is None:
        words = "some partition lacks a column, or its cells have another type than the frame says."
        raise DomainMismatch(words, fix="give all partitions the types of the frame, as pandas' astype does.")
    jobs, ends = cluster.assembled(workers, parts, starts, partial(_tabled, schema))
    rows = cluster.TaskSource(workers, schema, jobs, ends)
    rows.untyped = (*untyped(frame.dtypes.items()), *objects_in(schema, forms))
    return rows


def _tabled(schema: Any, cuts: Sequence[cluster.Cut], names: Sequence[str], frames: Sequence[Any]) -> Iterator[Any]:
    import pyarrow as pa

    wanted = pa.schema([schema.field(name) for name in names])

    def tables() -> Iterator[Any]:
        for (first, last, n), frame in zip(cuts, frames):
            if len(frame) != n:
                raise RowsChanged("the rows changed between two passes.", fix="fit frame.persist().")
            yield table_of(frame, first, last, wanted)

    return aligned(tables())
