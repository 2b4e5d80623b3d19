"""Triplicate without `await`: for scripts, notebooks and Spark tasks. ``with triplicate.blocking.connect(uri) as client:``

One background thread runs an event loop; every call hands its coroutine over and waits. Objects may be used from several threads,
one call at a time each. Nothing here is for a thread that runs an event loop itself: use `triplicate.connect` there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

from triplicate.client import (
    AdvLedgerWriter,
    Authenticator,
    BookieInfo,
    Client,
    ClientSettings,
    LedgerReader,
    LedgerWriter,
    Payload,
    Tail,
    WriteHandle,
)
from triplicate.client import connect as connect_async
from triplicate.errors import HandleClosed
from triplicate.ledger import Availability, DigestType, Entry, LedgerMetadata
from triplicate.runtime import Metrics

Result = TypeVar("Result")
Handle = TypeVar("Handle", bound="BlockingHandle")

NO_CUSTOM: Mapping[str, bytes] = {}
TAIL_BATCH_ENTRIES = 1024
LEDGER_IDS_BATCH = 1024


__all__ = [
    "BackgroundLoop",
    "BlockingAdvWriter",
    "BlockingClient",
    "BlockingHandle",
    "BlockingReader",
    "BlockingTail",
    "BlockingWriter",
    "connect",
]


class BackgroundLoop:
    """An event loop on a daemon thread of its own. Close it to end the thread."""

    def __init__(self, name: str = "triplicate") -> None:
        self._loop = _new_loop()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait for its result. Interrupting the wait (Ctrl-C) cancels it.

        Raises:
            HandleClosed: the loop was closed; the coroutine is closed unstarted. Else whatever the coroutine raises.
        """
        if self._closed:
            coroutine.close()
            raise HandleClosed("the connection was closed; open a new one")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, begin: Callable[[], asyncio.Future[Result]]) -> concurrent.futures.Future[Result]:
        """Call a function on the loop and return a future that threads can wait for. What the function itself raises is raised."""
        result: concurrent.futures.Future[Result] = concurrent.futures.Future()

        def settle(future: asyncio.Future[Result]) -> None:
            if future.cancelled():
                result.cancel()
            elif result.set_running_or_notify_cancel():
                error = future.exception()
                if error is not None:
                    result.set_exception(error)
                else:
                    result.set_result(future.result())

        async def begin_there() -> None:
            begin().add_done_callback(settle)

        self.call(begin_there())
        return result

    def close(self) -> None:
        """Stop the loop and end the thread. Idempotent."""
        if not self._closed:
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class BlockingHandle:
    """What a blocking writer can do however its entries get their ids. See `WriteHandle`."""

    def __init__(self, loop: BackgroundLoop, handle: WriteHandle) -> None:
        self._loop = loop
        self._handle = handle
        self.ledger_id = handle.ledger_id

    @property
    def metadata(self) -> LedgerMetadata:
        """As last written by this writer."""
        return self._handle.metadata

    @property
    def last_add_confirmed(self) -> int:
        """See `WriteHandle.last_add_confirmed`."""
        return self._handle.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """See `WriteHandle.last_add_pushed`."""
        return self._handle.last_add_pushed

    @property
    def length(self) -> int:
        """Payload bytes of the confirmed entries."""
        return self._handle.length

    @property
    def ensemble_changes(self) -> int:
        """How often a bookie had to be replaced."""
        return self._handle.ensemble_changes

    @property
    def missing_bookies(self) -> tuple[str, ...]:
        """Bookies of the ensemble that failed and take no entries now. See `WriteHandle.missing_bookies`."""
        return self._handle.missing_bookies

    def force(self) -> int:
        """Have every bookie of the ensemble sync; returns the last-add-confirmed. See `WriteHandle.force`."""
        return self._loop.call(self._handle.force())

    def close(self, *, wait: bool = True) -> int:
        """Close the ledger; returns the id of its last entry. See `WriteHandle.close`."""
        return self._loop.call(self._handle.close(wait=wait))

    def __enter__(self: Handle) -> Handle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call(self._handle.__aexit__(kind, error, trace))


class BlockingWriter(BlockingHandle):
    """`LedgerWriter` without `await`."""

    def __init__(self, loop: BackgroundLoop, writer: LedgerWriter) -> None:
        super().__init__(loop, writer)
        self._writer = writer

    def append(self, payload: Payload) -> int:
        """Append an entry; returns its id once it is durable. See `LedgerWriter.append`."""
        return self._loop.call(self._writer.append(payload))

    def append_nowait(self, payload: Payload) -> concurrent.futures.Future[int]:
        """Append without waiting; the future resolves to the entry id. See `LedgerWriter.append_nowait`."""
        return self._loop.start(lambda: self._writer.append_nowait(payload))

    def append_many(self, payloads: Iterable[Payload]) -> range:
        """Append entries with consecutive ids; returns their range. See `LedgerWriter.append_many`."""
        return self._loop.call(self._writer.append_many(list(payloads)))

    def append_many_nowait(self, payloads: Iterable[Payload]) -> concurrent.futures.Future[range]:
        """See `LedgerWriter.append_many_nowait`."""
        batch = list(payloads)
        return self._loop.start(lambda: self._writer.append_many_nowait(batch))


class BlockingAdvWriter(BlockingHandle):
    """`AdvLedgerWriter` without `await`."""

    def __init__(self, loop: BackgroundLoop, writer: AdvLedgerWriter) -> None:
        super().__init__(loop, writer)
        self._writer = writer

    def append(self, entry_id: int, payload: Payload) -> int:
        """Append an entry under this id; returns once it and all before it are durable. See `AdvLedgerWriter.append`."""
        return self._loop.call(self._writer.append(entry_id, payload))

    def append_nowait(self, entry_id: int, payload: Payload) -> concurrent.futures.Future[int]:
        """Append without waiting; the future resolves to the id. See `AdvLedgerWriter.append_nowait`."""
        return self._loop.start(lambda: self._writer.append_nowait(entry_id, payload))


class BlockingTail:
    """`Tail` as an iterator; entries cross the threads in batches."""

    def __init__(self, loop: BackgroundLoop, tail: Tail) -> None:
        self._loop = loop
        self._tail = tail
        self._ready: deque[Entry] = deque()

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        if not self._ready:
            self._ready.extend(self._loop.call(self._tail.next_entries(TAIL_BATCH_ENTRIES)))
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def close(self) -> None:
        """Stop. Idempotent."""
        self._loop.call(self._tail.aclose())

    def __enter__(self) -> BlockingTail:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class BlockingReader:
    """`LedgerReader` without `await`."""

    def __init__(self, loop: BackgroundLoop, reader: LedgerReader) -> None:
        self._loop = loop
        self._reader = reader
        self.ledger_id = reader.ledger_id

    @property
    def metadata(self) -> LedgerMetadata:
        """As last read."""
        return self._reader.metadata

    @property
    def is_closed(self) -> bool:
        """Whether the ledger, as last read, is closed."""
        return self._reader.is_closed

    @property
    def last_add_confirmed(self) -> int:
        """See `LedgerReader.last_add_confirmed`."""
        return self._reader.last_add_confirmed

    @property
    def length(self) -> int | None:
        """Payload bytes of a closed ledger; None while it is open."""
        return self._reader.length

    def read(self, first_entry_id: int, last_entry_id: int) -> list[Entry]:
        """Entries of a range, both ends included. See `LedgerReader.read`."""
        return self._loop.call(self._reader.read(first_entry_id, last_entry_id))

    def read_unconfirmed(self, first_entry_id: int, last_entry_id: int) -> list[Entry]:
        """Entries of a range, confirmed or not. See `LedgerReader.read_unconfirmed`."""
        return self._loop.call(self._reader.read_unconfirmed(first_entry_id, last_entry_id))

    def read_batch(self, first_entry_id: int, max_entries: int, max_bytes: int = 0) -> list[Entry]:
        """At least one entry, at most so many, in one request. See `LedgerReader.read_batch`."""
        return self._loop.call(self._reader.read_batch(first_entry_id, max_entries, max_bytes))

    def read_last_confirmed(self) -> int:
        """Ask the bookies how far the ledger is confirmed. See `LedgerReader.read_last_confirmed`."""
        return self._loop.call(self._reader.read_last_confirmed())

    def try_last_confirmed(self) -> int:
        """The first news of how far the ledger is confirmed. See `LedgerReader.try_last_confirmed`."""
        return self._loop.call(self._reader.try_last_confirmed())

    def read_explicit_last_confirmed(self) -> int | None:
        """What the writer told of it outside of entries. See `LedgerReader.read_explicit_last_confirmed`."""
        return self._loop.call(self._reader.read_explicit_last_confirmed())

    def wait_for_entry(self, entry_id: int, timeout_s: float) -> Entry | None:
        """An entry as soon as it is confirmed. See `LedgerReader.wait_for_entry`."""
        return self._loop.call(self._reader.wait_for_entry(entry_id, timeout_s))

    def entries_on(self, bookie_id: str) -> Availability:
        """Which entries of the ledger a bookie holds. See `LedgerReader.entries_on`."""
        return self._loop.call(self._reader.entries_on(bookie_id))

    def read_from(self, bookie_id: str, entry_id: int) -> Entry | None:
        """What one bookie holds of an entry. See `LedgerReader.read_from`."""
        return self._loop.call(self._reader.read_from(bookie_id, entry_id))

    def tail(self, first_entry_id: int = 0) -> BlockingTail:
        """Iterate over entries as they are confirmed, until the ledger is closed. See `LedgerReader.tail`."""
        return BlockingTail(self._loop, self._loop.call(_on_loop(lambda: self._reader.tail(first_entry_id))))

    def close(self) -> None:
        """End the tails of this reader. Idempotent."""
        self._loop.call(self._reader.aclose())

    def __enter__(self) -> BlockingReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class BlockingClient:
    """`Client` without `await`. Made by `connect`."""

    def __init__(
        self,
        uri: str,
        settings: ClientSettings | None = None,
        metrics: Metrics | None = None,
        authenticate: Authenticator | None = None,
    ) -> None:
        self.loop = BackgroundLoop()
        try:
            self._connection, self._client = self.loop.call(_open(uri, settings, metrics, authenticate))
        except BaseException:
            self.loop.close()
            raise

    @property
    def client(self) -> Client:
        """The client itself, for coroutines that are run with ``loop.call``."""
        return self._client

    def create(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] = NO_CUSTOM,
        ledger_id: int | None = None,
        deferred_sync: bool = False,
    ) -> BlockingWriter:
        """Create a ledger and return its writer. See `Client.create`."""
        creation = self._client.create(
            ensemble_size=ensemble_size,
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            digest_type=digest_type,
            password=password,
            custom=custom,
            ledger_id=ledger_id,
            deferred_sync=deferred_sync,
        )
        return BlockingWriter(self.loop, self.loop.call(creation))

    def create_adv(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] = NO_CUSTOM,
        ledger_id: int | None = None,
        deferred_sync: bool = False,
    ) -> BlockingAdvWriter:
        """Create a ledger whose entry ids the caller chooses. See `Client.create_adv`."""
        creation = self._client.create_adv(
            ensemble_size=ensemble_size,
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            digest_type=digest_type,
            password=password,
            custom=custom,
            ledger_id=ledger_id,
            deferred_sync=deferred_sync,
        )
        return BlockingAdvWriter(self.loop, self.loop.call(creation))

    def open(self, ledger_id: int, *, password: bytes = b"") -> BlockingReader:
        """Open a ledger for reading, without recovery. See `Client.open`."""
        return BlockingReader(self.loop, self.loop.call(self._client.open(ledger_id, password=password)))

    def recover(self, ledger_id: int, *, password: bytes = b"") -> BlockingReader:
        """Fence and close a ledger, and open it for reading. See `Client.recover`."""
        return BlockingReader(self.loop, self.loop.call(self._client.recover(ledger_id, password=password)))

    def delete(self, ledger_id: int) -> None:
        """Delete a ledger. See `Client.delete`."""
        self.loop.call(self._client.delete(ledger_id))

    def undelete(self, ledger_id: int) -> LedgerMetadata:
        """Bring a deleted ledger back. See `Client.undelete`."""
        return self.loop.call(self._client.undelete(ledger_id))

    def ledger_ids(self) -> Iterator[int]:
        """Ids of all ledgers, ascending."""
        ids = self._client.ledger_ids()
        while batch := self.loop.call(_take(ids, LEDGER_IDS_BATCH)):
            yield from batch

    def metadata_of(self, ledger_id: int) -> LedgerMetadata:
        """The metadata of a ledger. See `Client.metadata_of`."""
        return self.loop.call(self._client.metadata_of(ledger_id))

    def bookie_info(self, bookie_id: str) -> BookieInfo:
        """How much space a bookie has. See `Client.bookie_info`."""
        return self.loop.call(self._client.bookie_info(bookie_id))

    def close(self) -> None:
        """Close the client and end its thread. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                self.loop.call(connection.__aexit__(None, None, None))
            finally:
                self.loop.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def connect(
    uri: str,
    *,
    settings: ClientSettings | None = None,
    metrics: Metrics | None = None,
    authenticate: Authenticator | None = None,
) -> BlockingClient:
    """``with triplicate.blocking.connect("sqlite:///…/metadata.db") as client:`` Raises as `triplicate.connect`."""
    return BlockingClient(uri, settings, metrics, authenticate)


async def _open(
    uri: str, settings: ClientSettings | None, metrics: Metrics | None, authenticate: Authenticator | None
) -> tuple[connect_async | None, Client]:
    connection = connect_async(uri, settings=settings, metrics=metrics, authenticate=authenticate)
    return connection, await connection.__aenter__()


async def _on_loop(function: Callable[[], Result]) -> Result:
    return function()


async def _take(ids: Any, limit: int) -> list[int]:
    taken: list[int] = []
    while len(taken) < limit:
        try:
            taken.append(await anext(ids))
        except StopAsyncIteration:
            break
    return taken
