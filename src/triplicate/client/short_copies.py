"""Marks ledgers of which a writer has left a bookie without confirmed entries.

A writer that replaces a bookie, or resumes one that was away, goes on at the last-add-confirmed: entries that were confirmed before by the
other bookies are not sent again, and the metadata name the bookie for them. The ledger is marked as under-replicated, so that a replication
worker completes the copies. The mark waits for the delay after which the bookie would count as lost: one that comes back in time gets only
the entries that it lacks. When the client is closed, what is left is marked at once.

A client that dies before loses its notes. Then the auditor's check of all lists finds the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from triplicate.errors import FormatError, HandleClosed, MetadataError, NoSuchLedger
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope, sleep_until, timeout_at

MARK_LIMIT_S = 2.0
"""How long the marks of ledgers that lack copies may hold up a recovery or the closing of a client, in seconds."""
DELAY_S = 60.0
"""The delay where the cluster has none: the value that an auditor would set."""
LOOK_AGAIN_S = 10.0
"""Longest pause until the delay is read again, which may be changed at any time. Also the pause after a failure."""
LEDGERS_MAX = 10_000
"""Ledgers that are noted at a time. Further ones are left to the auditor's check."""


@dataclass(slots=True)
class _Note:
    since: float
    bookies: dict[str, None] = field(default_factory=dict)


class ShortCopies:
    """Belongs to one client. It runs one task while ledgers are noted, and none otherwise."""

    def __init__(self, host: Host, metadata: ClusterMetadata, scope: TaskScope) -> None:
        self._host = host
        self._clock = host.clock
        self._metadata = metadata
        self._scope = scope
        self._notes: dict[int, _Note] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def note(self, ledger_id: int, bookies: Iterable[str]) -> None:
        """Have a ledger marked, of which these bookies may lack entries, unless the metadata name others for them by then."""
        if ledger_id not in self._notes and len(self._notes) >= LEDGERS_MAX:
            self._trace_unmarked(ledger_id, bookies, f"{LEDGERS_MAX} ledgers wait to be marked")
            return
        self._notes.setdefault(ledger_id, _Note(self._clock.monotonic())).bookies.update(dict.fromkeys(bookies))
        if (self._task is None or self._task.done()) and not self._closed:
            with suppress(HandleClosed):  # The client is being closed, which marks the ledger.
                self._task = self._scope.spawn(self._run(), name="ledgers that lack copies")

    async def aclose(self) -> None:
        """Mark what is noted. It takes `MARK_LIMIT_S` at most. Idempotent."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        failure = ""
        try:
            async with timeout_at(self._clock.monotonic() + MARK_LIMIT_S):
                for ledger_id in list(self._notes):
                    await self._mark(ledger_id)
        except (MetadataError, TimeoutError) as error:
            failure = str(error) or "no answer in time"
        for ledger_id, note in self._notes.items():
            self._trace_unmarked(ledger_id, note.bookies, failure)
        self._notes.clear()

    async def _run(self) -> None:
        while self._notes:
            try:
                due = min(note.since for note in self._notes.values()) + await self._delay_s()
                now = self._clock.monotonic()
                if due > now:
                    await sleep_until(self._clock, min(due, now + LOOK_AGAIN_S))
                    continue
                await self._mark(min(self._notes, key=lambda ledger_id: self._notes[ledger_id].since))
            except MetadataError as error:
                self._host.trace("client.marks_postponed", ledgers=len(self._notes), error=str(error))
                await sleep_until(self._clock, self._clock.monotonic() + LOOK_AGAIN_S)

    async def _delay_s(self) -> float:
        try:
            delay_s = await self._metadata.under_replication.lost_bookie_recovery_delay_s()
        except FormatError:
            delay_s = None  # The auditor reports it.
        return DELAY_S if delay_s is None else max(0.0, delay_s)

    async def _mark(self, ledger_id: int) -> None:
        """Mark a noted ledger if it exists, and names the bookies. Raises MetadataError: it stays noted."""
        noted = list(self._notes[ledger_id].bookies)
        try:
            metadata = (await self._metadata.ledgers.get(ledger_id)).value
            named = {bookie_id for segment in metadata.segments for bookie_id in segment.ensemble}
            lacking = [bookie_id for bookie_id in noted if bookie_id in named]
            if lacking:
                await self._metadata.under_replication.mark(ledger_id, lacking)
                self._host.trace("client.ledger_marked", ledger=ledger_id, missing=",".join(lacking))
        except NoSuchLedger:
            pass  # A deleted ledger needs no copies.
        except FormatError as error:
            self._trace_unmarked(ledger_id, noted, str(error))
        note = self._notes[ledger_id]
        for bookie_id in noted:
            del note.bookies[bookie_id]
        if not note.bookies:
            del self._notes[ledger_id]

    def _trace_unmarked(self, ledger_id: int, bookies: Iterable[str], error: str) -> None:
        self._host.trace("client.ledger_not_marked", ledger=ledger_id, missing=",".join(bookies), error=error)
