"""The ledger that a writer goes on in next: created before the present one is fenced or closed, deleted if it is not needed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import NotEnoughBookies, TriplicateError
from triplicate.log.core.head import Quorums
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.segments import create_segment

SPARE_AGE_S = 300.0
"""An unused ledger is not kept longer, nor longer than half the time after which the sweep takes it for an orphan."""
SPARE_LEAST_S = 2.0
"""But so long, that a sweep without any grace does not keep a writer from ever having a next ledger."""


@dataclass(frozen=True, slots=True)
class SpareLedger:
    """A ledger that no list names yet.

    Args:
        reduced: its quorums, where they are smaller than the log asks for.
        made_at: monotonic seconds.
    """

    ledger: LedgerAppender
    reduced: Quorums | None
    made_at: float


def spare_age_s(settings: LogClientSettings) -> float:
    """How long an unused ledger may wait for its use."""
    return max(SPARE_LEAST_S, min(SPARE_AGE_S, settings.orphan_grace_s / 2))


class LedgerAllocator:
    """Belongs to one writer. At most one ledger waits here."""

    def __init__(
        self,
        client: LedgerClient,
        settings: LogClientSettings,
        log: LogSettings,
        custom: Mapping[str, str],
    ) -> None:
        self._client = client
        self._settings = settings
        self._log = log
        self._custom = dict(custom)
        self._turn = asyncio.Lock()
        self.spare: SpareLedger | None = None

    async def prepare(self, *, full: bool) -> None:
        """Have a ledger. One that waits is replaced if it is too old, or if it has fewer copies and now one with all can be created.

        Args:
            full: only one with all copies will do.

        Raises:
            NotEnoughBookies: too few for an ack quorum; with `full`, for the full ensemble. Also whatever creation raises.
        """
        async with self._turn:
            spare, clock = self.spare, self._client.host.clock
            if spare is not None and clock.monotonic() - spare.made_at > spare_age_s(self._settings):
                await self._discard()
                spare = None
            if spare is not None and spare.reduced is None:
                return
            try:
                ledger, reduced = await create_segment(
                    self._client, self._settings, self._log, self._custom, full=full or spare is not None
                )
            except NotEnoughBookies:
                if full or spare is None:
                    raise
                return
            # In this order: a writer that was about to take the old one meanwhile finds the new one.
            replaced, self.spare = self.spare, SpareLedger(ledger, reduced, clock.monotonic())
            await delete_unused(self._client, None if replaced is None else replaced.ledger)

    def collect(self) -> SpareLedger | None:
        """Hand the ledger over; the caller lists it, or discards it."""
        spare, self.spare = self.spare, None
        return spare

    async def aclose(self) -> None:
        """Delete what waits."""
        async with self._turn:
            await self._discard()

    async def _discard(self) -> None:
        spare = self.collect()
        if spare is not None:
            await delete_unused(self._client, spare.ledger)


async def delete_unused(client: LedgerClient, ledger: LedgerAppender | None) -> None:
    """Delete a ledger that no change of a log was ever asked to list; what cannot be deleted now is found by the sweep of orphans."""
    if ledger is None:
        return
    ledger.abandon()
    try:
        await client.delete(ledger.ledger_id)
    except TriplicateError as error:
        client.host.trace("log.orphan", ledger=ledger.ledger_id, error=repr(error))
