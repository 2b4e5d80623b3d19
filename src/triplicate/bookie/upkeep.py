"""Carries out the requests of operators: garbage collection, compaction and flushes on demand.

Requests come through the metadata (`metadata.upkeep_requests`), as those to be read-only do: an operator needs the address of no bookie,
and no port accepts changes. A process that may write the metadata can delete ledgers anyway.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from triplicate.bookie.files import NO_SPACE
from triplicate.bookie.storage.compaction import Compactor
from triplicate.bookie.storage.garbage import GarbageCollector
from triplicate.bookie.storage.storage import Storage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError, MetadataError
from triplicate.metadata import ClusterMetadata, UpkeepAction, UpkeepRequest, UpkeepState
from triplicate.runtime import Host, TaskScope, sleep

RETRY_S = 2.0
"""Pause after the metadata could not be read, in seconds."""


class Upkeep:
    """See the module's text. `metadata` may be replaced when a new session was opened.

    Args:
        on_full_disk: called when an action finds no space.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClusterMetadata,
        bookie_id: str,
        settings: BookieSettings,
        storage: Storage,
        collector: GarbageCollector,
        compactor: Compactor,
        on_full_disk: Callable[[], None],
    ) -> None:
        self.metadata = metadata
        self._host = host
        self._bookie_id = bookie_id
        self._settings = settings
        self._storage = storage
        self._collector = collector
        self._compactor = compactor
        self._on_full_disk = on_full_disk
        self._begun: frozenset[str] = frozenset()
        """Requests that this process has begun and that still exist."""

    async def run(self) -> None:
        """Carry out requests. Raises OSError: a disk or the storage failed."""
        async with TaskScope("bookie upkeep") as scope:
            while True:
                try:
                    await self._watch(scope)
                except MetadataError as error:
                    self._host.trace("bookie.upkeep_requests_unknown", error=str(error))
                    await sleep(self._host.clock, RETRY_S)

    async def _watch(self, scope: TaskScope) -> None:
        """Begin the requests that come, until the metadata was replaced. Raises MetadataError."""
        metadata = self.metadata
        watch = metadata.upkeep_requests.watch(self._bookie_id)
        try:
            while self.metadata is metadata:
                names = await metadata.upkeep_requests.names(self._bookie_id)
                new = [name for name in names if name not in self._begun]
                self._begun = frozenset(names)
                for name in new:
                    # One that waits for a round of collection must not delay a request for the state.
                    scope.spawn(self._serve(metadata, name), name="upkeep request")
                await watch.changed()
        finally:
            watch.close()

    async def _serve(self, metadata: ClusterMetadata, name: str) -> None:
        requests = metadata.upkeep_requests
        try:
            request = await requests.read(self._bookie_id, name)
            if request is None or request.has_ended:
                return
            await requests.answer(self._bookie_id, name, dataclasses.replace(request, state=UpkeepState.RUNNING))
            ended = await self._carry_out(request)
            self._host.trace("bookie.upkeep", action=request.action.value, state=ended.state.value, problem=ended.problem, **ended.facts)
            await requests.answer(self._bookie_id, name, ended)
        except (MetadataError, FormatError) as error:
            # The requester sees that no answer comes.
            self._host.trace("bookie.upkeep_not_answered", error=str(error))

    async def _carry_out(self, request: UpkeepRequest) -> UpkeepRequest:
        """The request with its answer. Raises OSError: a disk or the storage failed."""
        began_ms = self._now_ms()
        try:
            facts = await self._facts(request)
        except (MetadataError, CorruptionError) as error:
            return dataclasses.replace(request, state=UpkeepState.FAILED, problem=str(error))
        except OSError as error:
            # Any other error may be a failed sync, and such a disk must not be written to.
            if error.errno not in NO_SPACE:
                raise
            self._on_full_disk()
            return dataclasses.replace(request, state=UpkeepState.FAILED, problem=str(error))
        facts["seconds"] = round((self._now_ms() - began_ms) / 1000, 3)
        return dataclasses.replace(request, state=UpkeepState.DONE, facts=facts)

    async def _facts(self, request: UpkeepRequest) -> dict[str, Any]:
        match request.action:
            case UpkeepAction.GC:
                facts: dict[str, Any] = {"collection": dataclasses.asdict(await self._collector.run_round())}
                if request.force:
                    facts["compaction"] = await self._compact(major=True)
                return facts
            case UpkeepAction.COMPACT:
                return {"compaction": await self._compact(major=request.force)}
            case UpkeepAction.FLUSH:
                return await self._flush()
            case UpkeepAction.STATUS:
                return self._state()

    async def _compact(self, *, major: bool) -> dict[str, Any]:
        settings = self._settings
        threshold = settings.major_compaction_threshold if major else settings.compaction_threshold
        return dataclasses.asdict(await self._compactor.run_round(threshold))

    async def _flush(self) -> dict[str, Any]:
        flushes, size_bytes = self._storage.flusher.flushes, self._storage.cache.size_bytes
        await self._storage.flush()
        return {"flushes": self._storage.flusher.flushes - flushes, "cached_bytes": size_bytes}

    def _state(self) -> dict[str, Any]:
        collected, compacted = self._collector.last_report, self._compactor.last_report
        return {
            "collection_since_ms": self._collector.running_since_ms,
            "compaction_since_ms": self._compactor.running_since_ms,
            "last_collection": None if collected is None else dataclasses.asdict(collected),
            "last_compaction": None if compacted is None else dataclasses.asdict(compacted),
        }

    def _now_ms(self) -> int:
        return self._host.clock.wall_us() // 1000
