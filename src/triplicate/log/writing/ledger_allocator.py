"""The allocator of a writer's next ledger: created before the present one is fenced or closed, deleted if it is not needed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import NotEnoughBookies, TriplicateError
from triplicate.log.core.head import Quorums
from triplicate.log.core.quorums import full_quorums
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.segments import create_segment

SPARE_AGE_S = 300.0
"""Limit of the age of an unused ledger; also limited to half the grace time of the sweep of orphans."""
SPARE_LEAST_S = 2.0
"""The least such limit, so that a writer has a next ledger although the sweep has no grace time."""


@dataclass(frozen=True, slots=True)
class SpareLedger:
    """A ledger that is not listed yet.

    Args:
        reduced: its quorums if they are smaller than the log's settings.
        made_at: monotonic seconds.
    """

    ledger: LedgerAppender
    reduced: Quorums | None
    made_at: float


def spare_age_s(settings: LogClientSettings) -> float:
    """The age limit of an unused ledger, seconds."""
    return max(SPARE_LEAST_S, min(SPARE_AGE_S, settings.orphan_grace_s / 2))


class LedgerAllocator:
    """Keeps at most one ledger in reserve for one writer."""

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
        """Create the spare ledger. An existing one is replaced if it is too old, or if it has fewer copies and one with all can be created.

        Args:
            full: only a ledger with all copies.

        Raises:
            NotEnoughBookies: too few for an ack quorum; with `full`, for the full ensemble. Also other errors of the creation.
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
            # In this order, so that a writer that takes the spare during the deletion gets the new one.
            replaced, self.spare = self.spare, SpareLedger(ledger, reduced, clock.monotonic())
            await delete_unused(self._client, None if replaced is None else replaced.ledger)

    async def adopt(self, log: LogSettings) -> None:
        """Create ledgers by other settings of the log from now on. A spare with other quorums is deleted."""
        async with self._turn:
            before, self._log = self._log, log
            if full_quorums(before) != full_quorums(log) or before.ack_quorum != log.ack_quorum:
                await self._discard()

    def pop(self) -> SpareLedger | None:
        """Return the spare ledger and forget it. The caller lists it or discards it."""
        spare, self.spare = self.spare, None
        return spare

    async def aclose(self) -> None:
        """Delete the spare ledger."""
        async with self._turn:
            await self._discard()

    async def _discard(self) -> None:
        spare = self.pop()
        if spare is not None:
            await delete_unused(self._client, spare.ledger)


async def delete_unused(client: LedgerClient, ledger: LedgerAppender | None) -> None:
    """Delete a ledger that no change has tried to list. If that fails, the sweep of orphans deletes it later."""
    if ledger is None:
        return
    ledger.abandon()
    try:
        await client.delete(ledger.ledger_id)
    except TriplicateError as error:
        client.host.trace("log.orphan", ledger=ledger.ledger_id, error=repr(error))
