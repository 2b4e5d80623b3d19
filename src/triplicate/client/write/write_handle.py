"""The operations common to both kinds of ledger writers."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

from triplicate.client.write.add_pipeline import AddPipeline
from triplicate.errors import BookieReadOnly, TriplicateError
from triplicate.ledger import LedgerMetadata
from triplicate.runtime import shielded

Handle = TypeVar("Handle", bound="WriteHandle")


class WriteHandle:
    """The one writer of a ledger.

    Leaving ``async with`` closes the ledger. After a failure, every further append raises it; entries that were not confirmed have an
    unknown outcome, which only recovery of the ledger decides.
    """

    def __init__(self, pipeline: AddPipeline) -> None:
        self.ledger_id = pipeline.ledger_id
        self.largest_payload_bytes = pipeline.largest_payload_bytes
        self._pipeline = pipeline

    @property
    def metadata(self) -> LedgerMetadata:
        """As last written by this writer."""
        return self._pipeline.metadata

    @property
    def deferred_sync(self) -> bool:
        """Whether bookies answer before they sync; see `force`."""
        return self._pipeline.deferred_sync

    @property
    def last_add_confirmed(self) -> int:
        """Id of the last entry that, with all before it, has an ack quorum; with deferred sync, was forced as well. -1 before."""
        return self._pipeline.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """The greatest id that was sent or is about to be sent to the bookies; -1 before the first."""
        return self._pipeline.last_add_pushed

    @property
    def length(self) -> int:
        """Payload bytes of the entries up to the last-add-confirmed."""
        return self._pipeline.length

    @property
    def ensemble_changes(self) -> int:
        """How many times a bookie had to be replaced."""
        return self._pipeline.ensemble_changes

    @property
    def missing_bookies(self) -> tuple[str, ...]:
        """Bookies of the ensemble that failed and receive no entries now: entries confirmed meanwhile have fewer copies than configured.

        They are replaced as soon as other bookies are writable, or resumed when they answer. Empty is the normal state.
        """
        return self._pipeline.missing_bookies

    @property
    def has_missed_bookies(self) -> bool:
        """Whether entries were ever confirmed while a bookie was missing: some may have fewer copies than the write quorum."""
        return self._pipeline.has_missed_bookies

    @property
    def waiting_for_domains(self) -> int:
        """Number of entries that an ack quorum has acknowledged, with all before them, and that wait for a bookie in another fault domain.

        See `client.placement_min_ack_domains`; 0 without it.
        """
        return self._pipeline.waiting_for_domains

    @property
    def failure(self) -> TriplicateError | None:
        """The error that ended this writer; None while it is usable."""
        return self._pipeline.failure

    @property
    def is_finished(self) -> bool:
        """Whether the writer was closed or abandoned, so that nothing is left to end."""
        return self._pipeline.is_finished

    async def force(self) -> int:
        """Have every bookie of the ensemble sync every entry that it accepted; return the last-add-confirmed.

        With deferred sync, only force advances the last-add-confirmed: to the last entry that was acknowledged, with all before it,
        when force was called. Without deferred sync, every acknowledged entry is on the disks of an ack quorum already, and force
        brings it to the disks of all. Force needs version 3 of the protocol; a connection is opened if there is none.

        Raises:
            BookieError: a bookie failed to answer, or refused; force again. HandleClosed, and what ended the writer: as for `append`.
            OutcomeUnknown: with deferred sync, the connection to a bookie broke since the last force, and entries that the bookie had
            acknowledged without syncing may be lost; this ends the writer.
        """
        return await self._pipeline.force()

    async def close(self, *, wait: bool = True) -> int:
        """Close the ledger at its last-add-confirmed and return it (-1 when the ledger is empty). Idempotent.

        With deferred sync, close does not force: entries after the last force are cut off.

        Args:
            wait: first wait for the pending appends that can still be confirmed; otherwise they fail with LedgerClosed and are not
                part of the ledger.

        Raises:
            LedgerFenced: another client recovers the ledger. LedgerClosed: another client closed it elsewhere.
            OutcomeUnknown: the metadata could not be reached.
        """
        return await self._pipeline.close(wait=wait)

    def abandon(self) -> None:
        """Stop without closing the ledger: for a writer that lost it, or to leave the closing to recovery. Idempotent."""
        self._pipeline.abandon()

    async def __aenter__(self: Handle) -> Handle:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await self.close()
            return
        try:
            await shielded(self.close(wait=False))
        except TriplicateError as closing:
            error.add_note(f"closing ledger {self.ledger_id} failed as well: {closing}")


def replace_lost_bookie(writer: WriteHandle, bookie_id: str) -> None:
    """Have an open writer replace a bookie that is lost, if another one can be chosen. Not with deferred sync, as `replace_bookie`."""
    if not writer.is_finished:
        writer._pipeline.bookie_lost(bookie_id)


def replace_bookie(writer: WriteHandle, bookie_id: str, reason: BookieReadOnly) -> None:
    """Have an open writer replace a bookie of its ensemble before that bookie refuses an entry. Nothing happens if it is not in it.

    The ensemble of a ledger with deferred sync never changes, so its writer keeps the bookie until it is refused.
    """
    if not writer.is_finished and not writer.deferred_sync:
        writer._pipeline.bookie_failed(bookie_id, reason)
