"""The ledger of a snapshot: it is written chunk by chunk, and everything is checked when it is read. Memory is limited to a few chunks."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import CorruptionError, EntryNotAuthentic, HandleClosed, NoSuchEntry, SnapshotDamaged, TriplicateError
from triplicate.log.core.compression import Compressor
from triplicate.log.core.encryption import LedgerDecryptor, LedgerEncryptor
from triplicate.log.core.head import Head
from triplicate.log.core.snapshot_format import (
    CHUNK_BYTES,
    ContentCheck,
    SnapshotHeader,
    Trailer,
    digest_text,
    encode_chunk,
    encode_header,
    encode_trailer,
    encrypt,
)
from triplicate.log.core.snapshot_list import NO_SEGMENTS, LogLength, Snapshot
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient, LedgerView
from triplicate.log.store.log_encryption import LogEncryption
from triplicate.log.store.segments import create_ledger, password_of
from triplicate.runtime import RateLimiter, fault_point

READ_ENTRIES = 4
"""Entries that are read, decompressed and held at a time."""


class SnapshotWriter:
    """Writes one snapshot's ledger. Made by `LogSnapshots.writer`.

    Leaving ``async with`` without `finish` deletes the ledger.
    """

    def __init__(
        self, client: LedgerClient, ledger: LedgerAppender, header: SnapshotHeader, rate: RateLimiter, encryptor: LedgerEncryptor | None
    ) -> None:
        self.ledger_id = ledger.ledger_id
        self._client = client
        self._ledger = ledger
        self._header = header
        self._rate = rate
        self._worker = client.host.new_worker("snapshot-writer")
        self._compressor = Compressor(header.compression)
        self._encryptor = encryptor
        self._first = encrypt(encryptor, encode_header(header), 0)
        self._header_digest = digest_text(hashlib.sha256(self._first))
        self._digest = hashlib.sha256()
        self._chunks = 0
        self._size_bytes = 0
        self._stored_bytes = 0
        self._finished = False

    @classmethod
    async def create(
        cls,
        client: LedgerClient,
        settings: LogClientSettings,
        encryption: LogEncryption,
        head: Head,
        name: str,
        header: SnapshotHeader,
        rate_bytes_per_s: int,
    ) -> SnapshotWriter:
        """Create the ledger and send its header. Raises LogKeyMissing, ConfigError: the log is encrypted, and its key cannot be had."""
        encryption.check(name, head)
        custom = {"component": "snapshot", "log": name, "snapshot": header.snapshot_id, "node": header.node}
        ledger = await create_ledger(client, settings, head.settings, custom)
        encryptor = encryption.of_snapshot(name, head, ledger.ledger_id)
        return cls(client, ledger, header, RateLimiter(client.host.clock, rate_bytes_per_s), encryptor)

    async def append(self, content: bytes) -> None:
        """Append one chunk: `CHUNK_BYTES` of content, fewer in the last one.

        Raises:
            Exception: the error that ended the ledger.
        """
        payload = await self._worker.run(self._encode, content)
        await self._append(payload)
        await self._rate.admit(len(content))

    def _encode(self, content: bytes) -> bytes:
        if len(content) > CHUNK_BYTES:
            raise ValueError(f"a chunk of {len(content)} bytes; {CHUNK_BYTES} are possible")
        payload = encrypt(self._encryptor, encode_chunk(self._chunks, content, self._compressor), self._chunks + 1)
        self._digest.update(content if self._encryptor is None else payload)
        self._chunks += 1
        self._size_bytes += len(content)
        return payload

    async def _append(self, payload: bytes) -> None:
        if self._finished:
            raise HandleClosed(f"the ledger {self.ledger_id} of a snapshot is finished")
        await self._ledger.append(payload)
        self._stored_bytes += len(payload)

    async def finish(self, log_length: LogLength = NO_SEGMENTS) -> Snapshot:
        """Write the trailer and close the ledger. Returns the snapshot to be listed.

        Args:
            log_length: as `LogSnapshots.length` returned it when the copy was made.
        """
        digest = digest_text(self._digest)
        trailer = encode_trailer(Trailer(self._chunks, self._size_bytes, digest, self._header_digest))
        await self._append(encrypt(self._encryptor, trailer, self._chunks + 1))
        await self._ledger.close()
        self._finished = True
        header = self._header
        return Snapshot(
            header.snapshot_id,
            self.ledger_id,
            header.position,
            header.epoch,
            header.time_ms,
            self._size_bytes,
            self._stored_bytes,
            self._chunks,
            digest,
            header.machine,
            header.content,
            header.identity,
            header.node,
            log_length.ledger_id,
            log_length.size_bytes,
        )

    async def __aenter__(self) -> SnapshotWriter:
        try:
            await self._append(self._first)
        except BaseException:
            await self._give_up()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._give_up()

    async def _give_up(self) -> None:
        """Delete the ledger unless it is finished. If that fails, the sweep of orphans deletes it later."""
        await self._worker.close()
        if self._finished:
            return
        self._finished = True
        try:
            self._ledger.abandon()
            await self._client.delete(self.ledger_id)
        except TriplicateError as failure:
            self._client.host.trace("log.orphan", ledger=self.ledger_id, error=repr(failure))


class SnapshotReader:
    """Reads one snapshot's ledger. Use it with ``async with``, `header` first and then `chunks`, to the end.

    Args:
        decryptor: makes the decryptor; None where the log is not encrypted.
    """

    def __init__(
        self,
        client: LedgerClient,
        settings: LogClientSettings,
        snapshot: Snapshot,
        rate_bytes_per_s: int,
        decryptor: Callable[[], Awaitable[LedgerDecryptor | None]],
    ) -> None:
        self.snapshot = snapshot
        self._client = client
        self._settings = settings
        self._rate = RateLimiter(client.host.clock, rate_bytes_per_s)
        self._decryptor = decryptor
        self._check = ContentCheck(snapshot)
        self._view: LedgerView | None = None
        self._worker = client.host.new_worker("snapshot-reader")
        self._header: SnapshotHeader | None = None

    async def __aenter__(self) -> SnapshotReader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._worker.close()
        if self._view is not None:
            await self._view.aclose()

    @fault_point("log.snapshot_read")
    async def header(self) -> SnapshotHeader:
        """The header, compared with the list.

        Raises:
            SnapshotDamaged, NoSuchLedger: it cannot be loaded. FormatError: a later release wrote it. ReadFailed and others of the client.
        """
        if self._header is None:
            view = self._view = await self._client.open(self.snapshot.ledger_id, password=password_of(self._settings))
            entries = self.snapshot.chunks + 2
            if not view.is_closed or view.last_add_confirmed != entries - 1:
                state = "closed" if view.is_closed else "not closed"
                raise SnapshotDamaged(
                    f"snapshot {self.snapshot.snapshot_id}: ledger {self.snapshot.ledger_id} is {state} and has "
                    f"{view.last_add_confirmed + 1} entries; {entries} are listed"
                )
            self._check = ContentCheck(self.snapshot, await self._decryptor())
            self._header = self._check.header((await self._read(view, 0, 0))[0])
        return self._header

    async def chunks(self) -> AsyncIterator[memoryview]:
        """Yield the content in order. It is fully checked only once the iteration has ended. Raises as `header`."""
        await self.header()
        view = self._view
        assert view is not None, "the header was read from it"
        next_entry, last = 1, self.snapshot.chunks
        while next_entry <= last:
            until = min(next_entry + READ_ENTRIES - 1, last)
            payloads = await self._read(view, next_entry, until)
            for content in await self._worker.run(self._unpack, payloads):
                yield content
            await self._rate.admit(sum(map(len, payloads)))
            next_entry = until + 1
        (trailer,) = await self._read(view, last + 1, last + 1)
        self._check.trailer(trailer)

    def _unpack(self, payloads: list[bytes]) -> list[memoryview]:
        try:
            return [self._check.chunk(payload) for payload in payloads]
        except (SnapshotDamaged, EntryNotAuthentic):
            raise  # The wrong key of one node does not make a snapshot a damaged one.
        except CorruptionError as error:
            raise SnapshotDamaged(f"snapshot {self.snapshot.snapshot_id}: {error}") from error

    async def _read(self, view: LedgerView, first: int, last: int) -> list[bytes]:
        try:
            entries = await view.read(first, last)
        except NoSuchEntry as error:
            raise SnapshotDamaged(f"snapshot {self.snapshot.snapshot_id}: {error}") from error
        payloads = [entry.payload for entry in entries]
        if len(payloads) != last - first + 1:
            raise SnapshotDamaged(f"snapshot {self.snapshot.snapshot_id}: entries {first} to {last} gave {len(payloads)}")
        return payloads
