"""Moves the writers of one client off bookies that are being decommissioned.

A writer that appends learns from the refusal that a bookie is read-only, and replaces it. An idle writer learns nothing, so its
ledger would name the bookie until the next append. While a client has open writers, it therefore reads at intervals which are leaving.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from triplicate.client.write.write_handle import WriteHandle, replace_bookie
from triplicate.errors import BookieReadOnly, MetadataError
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope, sleep

CHECK_INTERVAL_S = 5.0
"""Less than the grace period after which a worker fences an open ledger that does not change (`autorecovery.open_ledger_grace_s`)."""


class DepartureFollower:
    """Runs one task while the client has open writers, and none otherwise.

    Args:
        open_writers: the writers that may be open.
    """

    def __init__(self, host: Host, metadata: ClusterMetadata, scope: TaskScope, open_writers: Callable[[], Iterable[WriteHandle]]) -> None:
        self._host = host
        self._metadata = metadata
        self._scope = scope
        self._open_writers = open_writers
        self._task: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """A writer was opened: start the task unless it runs."""
        if self._task is None or self._task.done():
            self._task = self._scope.spawn(self._run(), name="bookies that are being decommissioned")

    async def _run(self) -> None:
        while any(not writer.is_finished for writer in self._open_writers()):
            await sleep(self._host.clock, CHECK_INTERVAL_S)
            await self._check()

    async def _check(self) -> None:
        try:
            leaving = await self._metadata.read_only_requests.leaving()
        except MetadataError as error:
            self._host.trace("client.departures_not_read", error=str(error))
            return
        for writer in list(self._open_writers()) if leaving else ():
            for bookie_id in leaving:
                if bookie_id in writer.metadata.last_segment.ensemble:
                    replace_bookie(writer, bookie_id, BookieReadOnly(f"bookie {bookie_id} is being decommissioned"))
