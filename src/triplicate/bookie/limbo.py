"""Limbo: the state of ledgers on a bookie whose disks were replaced, which may have held entries that it lost.

Until its ledgers have been visited (`Incarnation.visited`), the answer "no such entry" could be false for each ledger that named this
bookie before: a reader or a recovery would take a lost entry for one that was never written, and an old writer would pass a fence that was
lost. Such ledgers are in limbo: present entries are served, missing entries are unknown, and only recoveries may add. Source: BookKeeper's
issue 2612, and its limbo state (BP-46).

Whether a ledger is in limbo is looked up in its metadata once for each handle, when the handle is loaded. A bookie that was never
replaced, or has been visited since, looks nothing up.
"""

from __future__ import annotations

import errno

from triplicate.bookie.core.ledger_table import LedgerTable
from triplicate.errors import FormatError, MetadataError, NoSuchLedger
from triplicate.metadata import ClusterMetadata, Incarnation, TrashedLedger, Versioned, may_have_lost_entries
from triplicate.runtime import Host, sleep, timeout_at

ASK_TIMEOUT_S = 10.0
"""Connections wait for the look-up with their request. After this time the request fails, which means unknown."""


class Limbo:
    """See the module's text. `metadata` may be replaced when a new session was opened."""

    def __init__(self, host: Host, metadata: ClusterMetadata, bookie_id: str, interval_s: float) -> None:
        """
        Args:
            interval_s: how often it is looked whether the bookie has been visited.
        """
        self.metadata = metadata
        self.incarnation = Incarnation()
        self._host = host
        self._bookie_id = bookie_id
        self._interval_s = interval_s

    @property
    def active(self) -> bool:
        """Whether missing entries are unknown here."""
        return not self.incarnation.visited

    async def open(self) -> None:
        """Read the bookie's incarnation.

        Raises:
            FormatError, MetadataError.
        """
        self.incarnation = await self.metadata.incarnations.get(self._bookie_id)
        if self.active:
            # A metadata server that is behind may not know yet that a ledger names this bookie. After this call it is past the
            # replacement.
            await self.metadata.ledgers.refresh()
            self._host.trace("bookie.entries_may_be_missing", bookie_id=self._bookie_id, incarnation=self.incarnation.number)

    async def is_in_limbo(self, ledger_id: int) -> bool:
        """Whether a ledger is in limbo here.

        Raises:
            OSError: the metadata cannot answer, so the state is unknown.
        """
        if not self.active:
            return False
        try:
            async with timeout_at(self._host.clock.monotonic() + ASK_TIMEOUT_S):
                return await self._named_before(ledger_id)
        except (MetadataError, FormatError) as error:
            raise OSError(errno.EIO, f"whether ledger {ledger_id} lost entries here cannot be found out: {error}") from error

    async def _named_before(self, ledger_id: int) -> bool:
        for _ in range(2):
            found: Versioned | TrashedLedger | None
            try:
                found = await self.metadata.ledgers.get(ledger_id)
            except NoSuchLedger:
                # A deleted ledger may be undeleted, and the answer must be the same then as now.
                try:
                    found = await self.metadata.trash.get(ledger_id)
                except FormatError as error:
                    self._host.trace("bookie.trash_not_understood", ledger_id=ledger_id, error=str(error))
                    return True  # Perhaps from a newer release, which can undelete the ledger.
            if found is not None:
                return await may_have_lost_entries(self.metadata, self._bookie_id, self.incarnation, ledger_id, found)
            # An undelete may have removed the record meanwhile.
        return False

    async def resolve_loaded(self, ledgers: LedgerTable) -> None:
        """Look up every ledger that replay has loaded: the journal has the entries that were added, and not those missing before them.

        Raises:
            OSError: as `is_in_limbo`.
        """
        if self.active:
            for ledger_id in ledgers.ids():
                handle = ledgers.get(ledger_id)
                if handle is not None and not handle.limbo:
                    handle.limbo = await self.is_in_limbo(ledger_id)
        else:
            ledgers.end_limbo()

    async def run(self, ledgers: LedgerTable) -> None:
        """Return when the bookie has been visited."""
        while self.active:
            await sleep(self._host.clock, self._interval_s)
            try:
                found = await self.metadata.incarnations.get(self._bookie_id)
            except (MetadataError, FormatError) as error:
                self._host.trace("bookie.incarnation_unknown", error=str(error))
                continue
            # Another incarnation does not concern this process: it has disks of its own.
            if found.number == self.incarnation.number and found.visited:
                self.incarnation = found
                ledgers.end_limbo()
                self._host.trace("bookie.visited", bookie_id=self._bookie_id, incarnation=found.number)
