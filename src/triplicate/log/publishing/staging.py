"""Staging ledgers: many tasks write them concurrently, and publishing makes them segments of a log."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import HandleClosed, TriplicateError
from triplicate.log.core.compression import Compressor
from triplicate.log.core.encrypted_entries import encrypt_entry
from triplicate.log.core.encryption import LedgerEncryptor
from triplicate.log.core.payload import Buffer, Producer, RecordHeaders
from triplicate.log.core.payload_encoder import Columns, EncodedEntry, columns_cut, encode_columns, wall_time_after
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.staging_marks import COMPONENT, PROMISE, PROMISED


@dataclass(frozen=True, slots=True)
class StagedLedger:
    """A sealed ledger that can be published. Small; it can be pickled from a task to a driver."""

    ledger_id: int
    records: int
    size_bytes: int
    last_entry: int
    min_time_us: int
    max_time_us: int


@dataclass(frozen=True, slots=True)
class StagingOrigin:
    """The origin of a staging ledger, stored as its custom metadata, which the sweep of orphans reads."""

    log: str
    application: str = ""
    query: str = ""
    batch: int = 0
    partition: int = 0
    attempt: int = 0

    def custom(self) -> dict[str, str]:
        """Custom metadata: text, numbers decimal."""
        return {
            "component": COMPONENT,
            PROMISE: PROMISED.decode(),
            "log": self.log,
            "app": self.application,
            "query": self.query,
            "batch": str(self.batch),
            "partition": str(self.partition),
            "attempt": str(self.attempt),
        }


class StagingWriter:
    """Writes one staging ledger, with several entries in flight. Made by `Logs.staging`.

    Leaving ``async with`` with an error, or if an entry is not acknowledged, deletes the ledger. Otherwise it is sealed.
    """

    def __init__(
        self, client: LedgerClient, settings: LogClientSettings, ledger: LedgerAppender, compression: str, encryptor: LedgerEncryptor | None
    ) -> None:
        self.ledger_id = ledger.ledger_id
        self._client = client
        self._settings = settings
        self._ledger = ledger
        self._compressor = Compressor(compression)
        self._encryptor = encryptor
        self._in_flight: deque[tuple[asyncio.Future[int], int]] = deque()
        self._bytes_in_flight = 0
        self._records = 0
        self._entries = 0
        self._size_bytes = 0
        self._min_time_us = 0
        self._wall_time_us = 0
        self._sealed: StagedLedger | None = None
        self._closed = False

    @property
    def records(self) -> int:
        """Records appended so far."""
        return self._records

    async def append_many(
        self,
        values: Sequence[Buffer | None],
        *,
        keys: Sequence[Buffer | None] | None = None,
        timestamps_us: Sequence[int] | None = None,
        headers: Sequence[RecordHeaders] | None = None,
    ) -> None:
        """Append records in order, in as many entries as they need. Returns when they are sent; `seal` waits for their acknowledgement.

        Raises:
            RecordTooLarge: a record exceeds 4 MiB.
        """
        for columns in columns_cut(values, keys, timestamps_us, headers, self._settings.entry_target_bytes):
            await self.append_columns(columns)

    async def append_columns(self, columns: Columns, *, preamble: Buffer | None = None, producer: Producer | None = None) -> None:
        """Append one entry of columns, for example the buffers of an Arrow batch. Returns when it is sent.

        Raises:
            RecordTooLarge: more than 4 MiB. Also the error that ended the ledger.
        """
        if self._closed or self._sealed is not None:
            raise HandleClosed(f"staging ledger {self.ledger_id} is sealed or given up")
        encoded = encode_columns(columns, self._compressor, preamble=preamble, producer=producer)
        await self._await_room(encoded.size_bytes)
        self._send(encoded)

    def _send(self, encoded: EncodedEntry) -> None:
        self._wall_time_us = wall_time_after(self._wall_time_us, self._client.host.clock.wall_us())
        if self._encryptor is None:
            payload = encoded.payload(self._records, self._wall_time_us)
        else:
            payload = encrypt_entry(self._encryptor, encoded, self._records, self._records, self._wall_time_us)
        self._in_flight.append((self._ledger.append_nowait(payload), len(payload)))
        self._bytes_in_flight += len(payload)
        if self._entries == 0:
            self._min_time_us = self._wall_time_us
        self._entries += 1
        self._records += encoded.count
        self._size_bytes += len(payload)

    async def _await_room(self, size_bytes: int) -> None:
        """Wait until an entry of this size may be sent. Raises the error of an earlier entry."""
        while self._in_flight and (
            len(self._in_flight) >= self._settings.staging_window_entries
            or self._bytes_in_flight + size_bytes > self._settings.staging_window_bytes
        ):
            await self._await_oldest()

    async def _await_oldest(self) -> None:
        future, size_bytes = self._in_flight[0]
        await asyncio.shield(future)
        if self._in_flight and self._in_flight[0][0] is future:
            self._in_flight.popleft()
            self._bytes_in_flight -= size_bytes

    async def seal(self) -> StagedLedger:
        """Wait for every entry, close the ledger, and return its description. Idempotent."""
        if self._sealed is None:
            while self._in_flight:
                await self._await_oldest()
            last_entry = await self._ledger.close()
            self._sealed = StagedLedger(
                self.ledger_id, self._records, self._size_bytes, last_entry, self._min_time_us, self._wall_time_us if self._records else 0
            )
        return self._sealed

    async def abandon(self) -> None:
        """Delete the ledger unless it is sealed. If that fails, the sweep of orphans deletes it later."""
        if self._closed or self._sealed is not None:
            return
        self._closed = True
        for future, _ in self._in_flight:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            self._ledger.abandon()
            await self._client.delete(self.ledger_id)
        except TriplicateError as error:
            self._client.host.trace("log.orphan", ledger=self.ledger_id, error=repr(error))

    async def __aenter__(self) -> StagingWriter:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                await self.seal()
        finally:
            await self.abandon()  # No effect on a sealed ledger.
