"""Shared helpers of the scenarios: expected entries, concurrent work, loads on a ledger, and a client that can be stopped.

Each scenario has two clients. `Player` names the one under test; the other one reads the result.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from kazoo.exceptions import NoNodeError

from tests.interop.bookies import BookieProcess, Cluster
from tests.interop.driver import SeenEntry, payload
from tests.interop.stand import Stand
from triplicate import Client, LedgerReader, LedgerWriter, connect
from triplicate.blocking import BackgroundLoop
from triplicate.config import ClientSettings
from triplicate.errors import TriplicateError
from triplicate.ledger import Entry

Result = TypeVar("Result")

SIZE = 200
SEED = 11
LIMIT_S = 30.0
WIRES = ("v2", "v3")
JAVA = "java"
WE = "we"
PLAYERS = (WE, JAVA)
"""The client under test."""


def value(index: int) -> bytes:
    """The payload of an entry."""
    return payload(SEED, index, SIZE)


def expected(first: int, last: int) -> list[SeenEntry]:
    """Entries appended one after another, beginning with id 0."""
    return [SeenEntry(entry_id, (entry_id + 1) * SIZE, value(entry_id)) for entry_id in range(first, last + 1)]


def seen(entries: Iterable[Entry | None]) -> list[SeenEntry | None]:
    """Entries of our client in the form of the driver's."""
    return [None if entry is None else SeenEntry(entry.entry_id, entry.length, bytes(entry.payload)) for entry in entries]


def later(work: Callable[[], Result]) -> Future[Result]:
    """Run a function on its own thread."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="beside the test", daemon=True).start()
    return future


async def append_all(writer: LedgerWriter, first: int, count: int) -> list[int | TriplicateError]:
    """Append entries concurrently, as many at a time as the window admits; return the id or failure of each."""
    found = await asyncio.gather(*(writer.append(value(index)) for index in range(first, first + count)), return_exceptions=True)
    outcomes: list[int | TriplicateError] = []
    for outcome in found:
        if not isinstance(outcome, int | TriplicateError):
            raise outcome
        outcomes.append(outcome)
    return outcomes


class StoppableClient:
    """Our client on its own loop, which can be paused: it then neither runs nor receives, as a stopped process."""

    def __init__(self, cluster: Cluster, settings: ClientSettings) -> None:
        self._loop = BackgroundLoop("stoppable client")
        self._connecting = connect(cluster.uri, settings=settings)
        self.client: Client = self._loop.call(self._connecting.__aenter__())
        self._resumed = threading.Event()

    def run(self, coroutine: Any) -> Any:
        return self._loop.call(coroutine)

    def pause(self) -> None:
        self._resumed.clear()
        held = threading.Event()

        async def hold() -> None:
            held.set()
            self._resumed.wait(LIMIT_S)

        later(lambda: self._loop.call(hold()))
        assert held.wait(LIMIT_S)

    def resume(self) -> None:
        self._resumed.set()

    def __enter__(self) -> StoppableClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        try:
            self._loop.call(self._connecting.__aexit__(None, None, None))
        finally:
            self._loop.close()


def read_by_us(stand: Stand, client: Client, ledger_id: int, last: int, *, password: bytes = b"") -> list[SeenEntry]:
    """Open without recovery and read from the first entry to `last`."""

    async def read() -> list[Entry]:
        async with await client.open(ledger_id, password=password) as reader:
            return await reader.read(0, last)

    return [entry for entry in seen(stand.run(read())) if entry is not None]


def bookie_of(cluster: Cluster, bookie_id: str) -> BookieProcess:
    return next(bookie for bookie in cluster.bookies if bookie.bookie_id == bookie_id)


def restart(stand: Stand, cluster: Cluster, bookie: BookieProcess) -> None:
    """Start a killed bookie, and wait until it is registered again.

    Its old registration outlives it by the rest of its session. This function deletes it, as the server would after some seconds;
    otherwise the old registration would be mistaken for the new one.
    """
    path = f"/{cluster.name}/ledgers/available/{bookie.bookie_id}"
    with stand.kazoo() as client, suppress(NoNodeError):
        client.delete(path)
    bookie.start()
    stand.wait_writable(cluster)


async def follow(reader: LedgerReader, into: list[SeenEntry | None]) -> None:
    """Append each entry of a tail to a list until the ledger ends."""
    async with reader.tail() as tail:
        async for entry in tail:
            into.extend(seen([entry]))
