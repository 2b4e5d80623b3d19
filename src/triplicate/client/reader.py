"""Reading a ledger without disturbing its writer.

Source: BookKeeper `LedgerOpenOp`, `ReadOnlyLedgerHandle`.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from triplicate.client.answers import EXPLICIT_NEGATIVES, error_of
from triplicate.client.lac_read import LacRead
from triplicate.client.pool import Services
from triplicate.client.range_read import RangeRead
from triplicate.client.tail import Tail
from triplicate.errors import ArgumentError, BookieError, HandleClosed, NoSuchEntry, ReadFailed
from triplicate.ledger import Entry, EntryCodec, LedgerMetadata
from triplicate.metadata import Versioned
from triplicate.wire import LAST_ENTRY, ReadResponse, Status


class LedgerReader:
    """A view of a ledger. Made by `Client.open` and `Client.recover`. What it once showed as confirmed stays so."""

    def __init__(self, services: Services, ledger_id: int, found: Versioned) -> None:
        self.ledger_id = ledger_id
        self._services = services
        self._found = found
        self._codec = EntryCodec(ledger_id, found.value.digest_type, found.value.password)
        self._last_add_confirmed = found.value.last_entry_id
        self._tails: dict[int, Tail] = {}
        self._closed = False

    @property
    def metadata(self) -> LedgerMetadata:
        """As last read."""
        return self._found.value

    @property
    def is_closed(self) -> bool:
        """Whether the ledger, as last read, is closed: its end is then final."""
        return self._found.value.is_closed

    @property
    def last_add_confirmed(self) -> int:
        """The greatest id known to be confirmed; of a closed ledger the last. -1 when there is none."""
        return self._last_add_confirmed

    @property
    def length(self) -> int | None:
        """Payload bytes of a closed ledger; None while it is open. Ledgers closed by other clients may state it wrongly."""
        return self._found.value.length if self.is_closed else None

    async def read(self, first_entry_id: int, last_entry_id: int) -> list[Entry]:
        """Entries `first_entry_id` to `last_entry_id`, both included, verified and in order. All are held in memory at once.

        Raises:
            ArgumentError: the range is empty or begins below 0. NoSuchEntry: it ends behind the last confirmed entry.
            ReadFailed: for an entry no replica delivered, also after the metadata was read again. NoSuchLedger: deleted meanwhile.
            ConnectionLost: the metadata is away, so whether entries behind the last known one are confirmed cannot be told.
        """
        self._check_usable()
        if not 0 <= first_entry_id <= last_entry_id:
            raise ArgumentError(f"entries {first_entry_id} to {last_entry_id} are not a range")
        if last_entry_id > self._last_add_confirmed and not self.is_closed:
            await self.read_last_confirmed()
        if last_entry_id > self._last_add_confirmed:
            error = NoSuchEntry(
                f"entry {last_entry_id} of ledger {self.ledger_id} does not exist: the last confirmed entry is {self._last_add_confirmed}"
            )
            error.ledger_id = self.ledger_id
            raise error
        return await self.read_confirmed(first_entry_id, last_entry_id)

    async def read_confirmed(self, first_entry_id: int, last_entry_id: int) -> list[Entry]:
        """`read` of entries that are known to be confirmed."""
        metrics, clock = self._services.metrics, self._services.host.clock
        started_at = clock.monotonic()
        while True:
            version = self._found.version
            try:
                entries = await RangeRead(self._services, self.metadata, self._codec, first_entry_id, last_entry_id).future
            except ReadFailed:
                # Even a closed ledger's entries move to other bookies when their copies are restored.
                await self.refresh_metadata()
                if self._found.version == version:
                    raise
            else:
                break
        metrics.read_seconds.observe(clock.monotonic() - started_at)
        metrics.read.inc(len(entries))
        metrics.read_bytes.inc(sum(len(entry.payload) for entry in entries))
        self.learn(entries[-1].last_add_confirmed)
        return entries

    async def read_last_confirmed(self) -> int:
        """Ask the bookies how far the ledger is confirmed; never fences. A closed ledger answers from its metadata.

        An entry that was just acknowledged may be missing from the answer: it becomes known with the entry that follows it.

        Raises:
            ReadFailed: too few bookies answered to exclude that more is confirmed; the message names the others.
            NoSuchLedger: it was deleted. ConnectionLost: the metadata, which names the bookies to ask, is away.
        """
        self._check_usable()
        if not self.is_closed:
            # Bookies that were replaced since would in good faith answer with what they last heard, and nobody tells them of the end.
            await self.refresh_metadata()
        return await self.ask_last_confirmed()

    async def ask_last_confirmed(self) -> int:
        """`read_last_confirmed` with metadata that was just read."""
        while not self.is_closed:
            version = self._found.version
            try:
                self.learn(await LacRead(self._services, self.metadata, self._codec).future)
            except ReadFailed:
                await self.refresh_metadata()
                if self._found.version == version:
                    raise
            else:
                break
        return self._last_add_confirmed

    async def read_from(self, bookie_id: str, entry_id: int) -> Entry | None:
        """What one bookie holds of an entry, verified; None only when it says explicitly that it holds nothing of it.

        Raises:
            BookieError: it did not answer, or with an error; whether it holds the entry is unknown.
            DigestMismatch: it holds a damaged copy.
        """
        self._check_usable()
        future: asyncio.Future[ReadResponse] = asyncio.get_running_loop().create_future()

        def answered(_: None, response: ReadResponse | None, error: BookieError | None) -> None:
            if future.done():
                return
            if response is not None:
                future.set_result(response)
            elif error is not None:
                future.set_exception(error)

        self._services.pool.channel(bookie_id).read(self.ledger_id, entry_id, answered, None)
        response = await future
        if response.status == Status.OK and response.body is not None:
            return self._codec.decode(response.body, None if entry_id == LAST_ENTRY else entry_id)
        if response.status in EXPLICIT_NEGATIVES:
            return None
        raise error_of(response.status, bookie_id, self.ledger_id, f"read of entry {entry_id}")

    def tail(self, first_entry_id: int = 0) -> Tail:
        """Iterate over the entries from `first_entry_id` on, as they are confirmed, until the ledger is closed; never fences.

        Use it with ``async with`` or close it with `Tail.aclose`.
        """
        self._check_usable()
        if first_entry_id < 0:
            raise ArgumentError(f"first_entry_id is {first_entry_id}; it must be 0 or more")
        tail = Tail(self._services, self, self._codec, first_entry_id)
        self._tails[id(tail)] = tail
        return tail

    def tail_ended(self, tail: Tail) -> None:
        """For `Tail.aclose`."""
        self._tails.pop(id(tail), None)

    @property
    def has_tails(self) -> bool:
        """Whether a tail of this reader is still open."""
        return bool(self._tails)

    async def refresh_metadata(self) -> None:
        """Read the metadata again: new segments, other bookies, or the ledger's end.

        Raises:
            NoSuchLedger: it was deleted. ConnectionLost: the metadata store is away.
        """
        found = await self._services.metadata.ledgers.get(self.ledger_id)
        if found.version >= self._found.version:
            self._found = found
            if found.value.is_closed:
                self._last_add_confirmed = found.value.last_entry_id
            else:
                self.learn(found.value.last_segment.first_entry_id - 1)

    def learn(self, last_add_confirmed: int) -> None:
        """Something said how far the ledger is confirmed; the known value only grows, and is final once the ledger is closed."""
        if not self.is_closed and last_add_confirmed > self._last_add_confirmed:
            self._last_add_confirmed = last_add_confirmed

    async def aclose(self) -> None:
        """End the tails of this reader. Idempotent. The ledger itself is not touched."""
        self._closed = True
        for tail in list(self._tails.values()):
            await tail.aclose()

    async def __aenter__(self) -> LedgerReader:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def _check_usable(self) -> None:
        if self._closed:
            raise HandleClosed(f"the reader of ledger {self.ledger_id} was closed")
