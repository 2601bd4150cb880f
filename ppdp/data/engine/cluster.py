"""A cluster of Dask: its client, what its workers are, and waiting for them."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from typing import Any

from ppdp.core.private_files import private_folder
from ppdp.data.engine.tasks import kind_here, lost, unlike
from ppdp.exceptions import InvalidInput, InvalidParameter, PpdpError

PATIENCE = 60.0  # seconds without any worker
ANSWER = 5.0  # seconds in which a scheduler does
SILENCE = 8.0  # seconds in which one that has work does
GONE = 4.0  # seconds in which a connection that is lost comes back
PAUSE = 0.005
# Of a cluster that nobody else uses: by default it would look at itself for a tenth of the time of two processors.
RARELY = {"distributed.admin.tick.interval": "1s", "distributed.worker.profile.enabled": False}


def client_class() -> Any:
    """Of Dask, if it is installed."""
    try:
        from distributed import Client

        return Client
    except ImportError:
        pass
    raise InvalidParameter("Dask is not installed.", fix='pip install "ppdp[dask]".')


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
                client = Client(address, timeout=ANSWER, set_as_default=False)
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
        return await asyncio.wait_for(asked(), ANSWER)

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
        workers = _workers(self.client)
        self.asked = now = time.monotonic()
        self.heard, self.seen = (now if workers is not None else self.heard), (now if workers else self.seen)
        patience = SILENCE if self.client.status == "running" else GONE
        if now - self.heard > patience or now - self.seen > PATIENCE:
            raise lost("Dask")


def kind_of(client: Any) -> tuple[str, ...]:
    """What all workers are."""
    found: set[tuple[str, ...]] = set()

    def ask() -> None:
        with suppress(Exception):  # of a connection that is gone, or of workers without this file
            client.wait_for_workers(1, PATIENCE)
            found.update(client.run(kind_here).values())

    watch, asking = _Watch(client), Thread(target=ask, daemon=True)  # Dask would wait for ever for an answer
    asking.start()
    while asking.is_alive():
        asking.join(PAUSE)
        watch.look()
    if len(found) != 1:
        raise unlike() if found else lost("Dask")
    return found.pop()


def _workers(client: Any) -> int | None:
    """How many workers there are, if a scheduler says so."""
    try:
        return (
            len(client.sync(client.scheduler.ncores, callback_timeout=SILENCE)) if client.status == "running" else None
        )
    except Exception:  # of a connection that is gone
        return None
