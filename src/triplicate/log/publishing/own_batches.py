"""Batches that the writer of a log lists itself, all or none, of any number of records: for logs that nobody else publishes to.

The entries are written to a staging ledger, which becomes a segment of the log at the next roll. The change of the head that lists it
checks the writer's epoch, as for every roll. So a batch is never in the log in part, and never of a writer that was superseded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import NoSuchLedger, OutcomeUnknown, TriplicateError
from triplicate.log.core.head import LogSegment
from triplicate.log.core.payload_encoder import columns_of
from triplicate.log.publishing.publication import Publication
from triplicate.log.publishing.staging import StagedLedger, StagingOrigin, StagingWriter
from triplicate.log.store.head_store import HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.log_encryption import LogEncryption, staging_mark
from triplicate.log.store.segments import create_segment
from triplicate.log.writing.segment_transitions import ListedEntry
from triplicate.metadata import TreeOperation
from triplicate.runtime import fail, fault_point, resolve


@dataclass(slots=True)
class _Batch:
    """A sealed batch that the next roll lists."""

    publication: Publication
    listed: asyncio.Future[range] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class OwnBatches:
    """The publish source of one writer (`PublishSource`).

    Args:
        epoch: of the writer.
    """

    def __init__(
        self, client: LedgerClient, store: HeadStore, settings: LogClientSettings, encryption: LogEncryption, name: str, epoch: int
    ) -> None:
        self._client = client
        self._store = store
        self._settings = settings
        self._encryption = encryption
        self._name = name
        self._epoch = epoch
        self._batch: _Batch | None = None
        """The batch that waits for its roll."""
        self._waits = asyncio.Event()
        self._failure: BaseException | None = None

    async def append(self, entries: AsyncIterable[ListedEntry]) -> range:
        """Append the records of entries, all or none; their offsets. One call at a time.

        Raises:
            NotEnoughBookies, RecordTooLarge, errors of `entries` and of the ledger: nothing was appended. LogFenced; OutcomeUnknown.
        """
        if self._failure is not None:
            raise self._failure
        assert self._batch is None, "one batch is appended at a time"
        publication = Publication(self._client, self._store, self._settings, self._name, [await self._stage(entries)], None, None)
        await publication.read()
        if self._failure is not None:
            raise self._failure
        batch = self._batch = _Batch(publication)
        self._waits.set()
        return await batch.listed

    @fault_point("log.stage_own_batch")
    async def _stage(self, entries: AsyncIterable[ListedEntry]) -> StagedLedger:
        head = (await self._store.read(self._name)).head
        self._encryption.check(self._name, head)
        custom = {**StagingOrigin(self._name).custom(), "epoch": str(self._epoch), **staging_mark(head)}
        ledger, _ = await create_segment(self._client, self._settings, head.settings, custom)
        encryptor = self._encryption.of_staging(self._name, head, ledger.ledger_id)
        async with StagingWriter(self._client, self._settings, ledger, head.settings.compression, encryptor) as staging:
            async for preamble, records in entries:
                await staging.append_columns(columns_of(records), preamble=preamble)
        return await staging.seal()

    async def follow(self, roll: Callable[[], Awaitable[None]]) -> None:
        """Roll whenever a batch waits, until the writer ends.

        Args:
            roll: starts a roll of the writer, and returns when the next segment is open.
        """
        while True:
            await self._waits.wait()
            self._waits.clear()
            await roll()
            batch, self._batch = self._batch, None
            if batch is not None:
                await self._answer(batch)

    async def _answer(self, batch: _Batch) -> None:
        """Find out from the list whether a roll has listed a batch, whichever of its attempts that was."""
        try:
            found = await batch.publication.find(await self._store.read(self._name), attempted=True)
        except TriplicateError as error:
            unknown = OutcomeUnknown(f"it is unknown whether log {self._name!r} has a batch of its writer: {error}")
            unknown.__cause__ = error
            fail(batch.listed, unknown)
            return
        if found is None:
            fail(batch.listed, NoSuchLedger(f"nothing was appended to log {self._name!r}: the ledger of the batch was deleted"))
        else:
            resolve(batch.listed, range(found.first_offset, found.end_offset))

    async def admit(self, stored: StoredHead, first_offset: int) -> tuple[Sequence[LogSegment], Sequence[TreeOperation]]:
        """The segment that a roll lists between two segments of the writer, and further operations of its transaction. Raises NoNode."""
        batch = self._batch
        if batch is None or await batch.publication.find(stored, attempted=True) is not None:
            return (), ()
        return batch.publication.segments, await batch.publication.operations(stored, first_offset)

    def discard_ready(self) -> bool:
        """List nothing at the next roll, because the batch's ledger is gone. Returns whether a batch waited."""
        batch, self._batch = self._batch, None
        if batch is not None:
            fail(batch.listed, NoSuchLedger(f"nothing was appended to log {self._name!r}: the ledger of the batch was deleted"))
        return batch is not None

    def end(self, error: BaseException) -> None:
        """The writer has ended. Whether a batch that waits was listed is unknown."""
        self._failure = self._failure or error
        if self._batch is not None:
            fail(self._batch.listed, self._failure)
