"""Moves the idle writers of one client off bookies that are being decommissioned, and off lost ones.

A writer that appends learns from a refusal or a failed connection that it must replace a bookie. An idle writer learns nothing, so its
ledger would name the bookie until the next append: a lost bookie's copies could not be made again before. While a client has open writers,
it therefore reads at intervals which bookies are leaving, and which are registered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from triplicate.client.write.write_handle import WriteHandle, replace_bookie, replace_lost_bookie
from triplicate.errors import BookieReadOnly, MetadataError
from triplicate.ledger import Absences
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope, sleep

CHECK_INTERVAL_S = 5.0
"""Less than the grace period after which a worker fences an open ledger that does not change (`autorecovery.open_ledger_grace_s`)."""
WRITERS_PER_CHECK = 50
"""Writers that replace a lost bookie after one check: each reads the list of bookies and writes the metadata of its ledger."""


class DepartureFollower:
    """Runs one task while the client has open writers, and none otherwise.

    Args:
        open_writers: the writers that may be open.
        lost_limit_s: a bookie that was not registered for this time is lost; 0: none is.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClusterMetadata,
        scope: TaskScope,
        open_writers: Callable[[], Iterable[WriteHandle]],
        *,
        lost_limit_s: float,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._scope = scope
        self._open_writers = open_writers
        self._absences = Absences(lost_limit_s) if lost_limit_s > 0 else None
        self._task: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """A writer was opened: start the task unless it runs."""
        if self._task is None or self._task.done():
            self._task = self._scope.spawn(self._run(), name="bookies that leave or are lost")

    async def _run(self) -> None:
        while any(not writer.is_finished for writer in self._open_writers()):
            await sleep(self._host.clock, CHECK_INTERVAL_S)
            await self._check()

    async def _check(self) -> None:
        try:
            leaving = await self._metadata.read_only_requests.leaving()
            registered = frozenset() if self._absences is None else await self._metadata.bookies.registered_ids()
        except MetadataError as error:
            self._host.trace("client.departures_not_read", error=str(error))
            return
        ensembles = [(writer, writer.metadata.last_segment.ensemble) for writer in self._open_writers() if not writer.is_finished]
        for writer, ensemble in ensembles if leaving else ():
            for bookie_id in leaving:
                if bookie_id in ensemble:
                    replace_bookie(writer, bookie_id, BookieReadOnly(f"bookie {bookie_id} is being decommissioned"))
        if self._absences is None:
            return
        used = {bookie_id for _, ensemble in ensembles for bookie_id in ensemble}
        lost = self._absences.observe(used, registered, self._host.clock.monotonic())
        affected = [(writer, bookie_id) for bookie_id in lost for writer, ensemble in ensembles if bookie_id in ensemble]
        for writer, bookie_id in affected[:WRITERS_PER_CHECK]:
            replace_lost_bookie(writer, bookie_id)
