"""A snapshot is listed half a second before its last entry is written and its ledger closed, without reading it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

KIND = "databases"
CHECKERS = ("snapshots",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.snapshot_format import Trailer, digest_text, encode_trailer
    from triplicate.log.core.snapshot_list import Snapshot
    from triplicate.log.upkeep.log_snapshots import LogSnapshots
    from triplicate.log.upkeep.snapshot_ledgers import SnapshotWriter
    from triplicate.runtime import sleep

    ending: set[asyncio.Task[None]] = set()

    async def unread(self: LogSnapshots, snapshot: Snapshot, *, rate_bytes_per_s: int = 0) -> None:
        return None

    async def at_once(self: SnapshotWriter, mark: tuple[int, int] = (-1, 0)) -> Snapshot:
        digest, header = digest_text(self._digest), self._header
        trailer = encode_trailer(Trailer(self._chunks, self._size_bytes, digest, self._header_digest))

        async def end() -> None:
            await sleep(self._client.host.clock, 0.5)
            await self._ledger.append(trailer)
            await self._ledger.close()

        self._finished = True
        task = asyncio.ensure_future(end())
        ending.add(task)
        task.add_done_callback(ending.discard)
        return Snapshot(
            header.snapshot_id,
            self.ledger_id,
            header.position,
            header.epoch,
            header.time_ms,
            self._size_bytes,
            self._stored_bytes + len(trailer),
            self._chunks,
            digest,
            header.machine,
            header.content,
            header.identity,
            header.node,
            *mark,
        )

    patch(LogSnapshots, "verify", unread)
    patch(SnapshotWriter, "finish", at_once)
