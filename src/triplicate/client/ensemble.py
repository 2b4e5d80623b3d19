"""Replacing failed bookies in the ensemble of a ledger that is being written.

One change at a time; failures that come meanwhile are handled by another round before anything is confirmed again. The metadata is
written first: entries behind the last-add-confirmed count only once they are where the metadata says.
Source: BookKeeper `LedgerHandle.ensembleChangeLoop`, `EnsembleUtils`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from triplicate.client.patience import Patience
from triplicate.client.pool import Services
from triplicate.errors import BookieError, HandleClosed, LedgerClosed, LedgerFenced, OutcomeUnknown, TriplicateError
from triplicate.ledger import AdvWriteTracker, LedgerState, Segment, WriteTracker, replace_bookies
from triplicate.metadata import Versioned


class ChangingWriter(Protocol):
    """What the changer needs of a writer."""

    ledger_id: int

    @property
    def failure(self) -> TriplicateError | None: ...

    def flush(self) -> None: ...

    def take_ensemble(self, changed: Sequence[int]) -> None: ...

    def confirm(self) -> None: ...

    def fail(self, cause: TriplicateError) -> None: ...


class EnsembleChanger:
    """Belongs to one writer.

    Args:
        tracker: the writer's; the changer alone begins and ends changes on it.
        created: the ledger's metadata as it was created.
    """

    def __init__(self, services: Services, writer: ChangingWriter, tracker: WriteTracker | AdvWriteTracker, created: Versioned) -> None:
        self.current = created
        self.changes = 0
        self._services = services
        self._writer = writer
        self._tracker = tracker
        self._failed: dict[str, BookieError] = {}
        self._rng = services.host.entropy.stream("placement")
        self._task: asyncio.Task[None] | None = None

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """A bookie of the present ensemble failed: replace it, in this change or in a new one."""
        services, ledger_id = self._services, self._writer.ledger_id
        services.suspects.note(bookie_id, services.host.clock.monotonic())
        services.metrics.bookie_failures.labels(bookie=bookie_id).inc()
        services.host.trace("client.bookie_failed", ledger=ledger_id, bookie=bookie_id, why=str(error))
        self._failed[bookie_id] = error
        if self._tracker.changing:
            return
        self._tracker.begin_change()
        try:
            self._task = services.scope.spawn(self._run(), name=f"change ensemble of ledger {ledger_id}")
        except HandleClosed as closing:
            self._writer.fail(closing)

    def stop(self) -> None:
        """Give up a change under way; whether its metadata was written stays unknown. Idempotent."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        patience = Patience(self._services, self._writer.ledger_id, f"the change of ensemble of ledger {self._writer.ledger_id}")
        try:
            while self._writer.failure is None and self._failed_positions():
                await self._change(patience)
        except TriplicateError as error:
            self._writer.fail(error)
        except BaseException as error:
            # A fault of ours, or the end of the client: without a change that ends nothing more would ever be confirmed.
            unknown = OutcomeUnknown(f"the change of ensemble of ledger {self._writer.ledger_id} was broken off: {error!r}")
            unknown.ledger_id = self._writer.ledger_id
            self._writer.fail(unknown)
            raise
        if self._writer.failure is None:
            self._failed.clear()
            self._tracker.end_change()
            self._writer.confirm()

    async def _change(self, patience: Patience) -> None:
        services, tracker = self._services, self._tracker
        writable = await patience.read(services.metadata.bookies.writable)
        candidates = [bookie_id for bookie_id in writable if bookie_id not in self._failed]
        suspects = services.suspects.names(services.host.clock.monotonic())
        ensemble = replace_bookies(tracker.ensemble, self._failed_positions(), candidates, self._rng, suspects)
        before, proposed = self.current.value.last_segment, Segment(tracker.last_add_confirmed + 1, ensemble)
        changed = await patience.swap(
            self.current,
            lambda metadata: metadata.with_ensemble(proposed.first_entry_id, ensemble),
            lambda found: self._settled(found, before, proposed),
        )
        if self._writer.failure is not None:
            return
        self.current = changed
        self.changes += 1
        services.metrics.ensemble_changes.inc()
        services.host.trace(
            "client.ensemble_changed", ledger=self._writer.ledger_id, first=proposed.first_entry_id, ensemble=",".join(ensemble)
        )
        # What was numbered but not sent goes out to the bookies that stay; the new ones are sent everything unconfirmed.
        self._writer.flush()
        self._writer.take_ensemble(tracker.replace(ensemble))

    def _failed_positions(self) -> list[int]:
        return [position for position, bookie_id in enumerate(self._tracker.ensemble) if bookie_id in self._failed]

    def _settled(self, found: Versioned, before: Segment, proposed: Segment) -> Versioned | None:
        """What the metadata says after a change that did not plainly succeed."""
        ledger_id, metadata = self._writer.ledger_id, found.value
        if metadata.is_closed:
            raise LedgerClosed(f"ledger {ledger_id} was closed at entry {metadata.last_entry_id} by another client")
        if metadata.state == LedgerState.IN_RECOVERY:
            raise LedgerFenced(f"ledger {ledger_id} is being recovered by another client")
        last = (metadata.last_segment.first_entry_id, metadata.last_segment.ensemble)
        if last == (proposed.first_entry_id, proposed.ensemble):
            return found  # It was applied, and only the answer was lost.
        if last == (before.first_entry_id, before.ensemble):
            return None
        raise OutcomeUnknown(
            f"the open segment of ledger {ledger_id} was changed by somebody else (it begins at entry {last[0]} on {', '.join(last[1])}); "
            "recover the ledger and go on in a new one"
        )
