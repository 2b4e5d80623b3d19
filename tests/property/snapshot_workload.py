"""A leader, a follower, and copies restored from snapshots at random points, which then follow the log."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from tests.property.rowlog_workload import Pair
from triplicate.log import CHUNK_BYTES, Snapshot, SnapshotHeader
from triplicate.runtime import real_host
from triplicate.sql.executor.statement_batches import PendingBatch
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.sqlite_copy import OUTGOING, CopyScope, SqliteBackup, SqliteCopy
from triplicate.sql.storage.sqlite_file import open_follower
from triplicate.sql.storage.sqlite_snapshots import SqlSnapshots

IDENTITY = b"d" * 16


class Owner:
    """A closed local copy."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.position = 0

    async def replace(self, swap: Callable[[], None]) -> int:
        swap()
        connection = open_follower(self.path)
        try:
            self.position = Applier(connection).position
        finally:
            connection.close(True)
        return self.position


class RecordedPair(Pair):
    """Stores every batch, as the log would."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.batches: list[LogBatch] = []

    def send(self, pending: PendingBatch) -> None:
        start = self.writer.position
        super().send(pending)
        if pending.records:
            self.batches.append(LogBatch(start, pending.records, pending.preamble, 1))

    def replay(self, path: str) -> None:
        """Apply the recorded batches beyond a copy's position."""
        connection = open_follower(path)
        try:
            applier = Applier(connection)
            follow(applier, [batch for batch in self.batches if batch.first_offset >= applier.position])
        finally:
            connection.close(True)


def snapshot_and_restore(source: str, target: Path, meanwhile: Callable[[], object]) -> int:
    """Copy a file during other work, and restore the copy elsewhere; return its position."""

    async def body() -> int:
        host = real_host("snapshot", seed=1)
        scope = CopyScope(host, host.new_worker("copy"), source, source + OUTGOING)
        try:
            backup = SqliteBackup.begin(scope, None, 1 << 30)
            meanwhile()
            while not backup.step():
                meanwhile()
            backup.finish()
            copy = SqliteCopy.open(scope, None, backup)
            content = await copy.read(0, copy.size_bytes)
        finally:
            await scope.aclose()
        assert len(content) == copy.size_bytes
        identity, digest = IDENTITY.hex(), f"sha256:{hashlib.sha256(content).hexdigest()}"
        snapshot = Snapshot("s", 1, copy.position, copy.epoch, 0, len(content), 0, 0, digest, "sql", "sqlite", identity, "n")
        header = SnapshotHeader("s", "l", copy.position, copy.epoch, 0, "sql", "sqlite", identity, "n", "auto", copy.facts)

        async def chunks() -> AsyncIterator[memoryview]:
            for start in range(0, len(content), CHUNK_BYTES):
                yield memoryview(content)[start : start + CHUNK_BYTES]

        return await SqlSnapshots(host, Owner(target), "db", IDENTITY, None, 1 << 30).restore(snapshot, header, chunks())

    return asyncio.run(body())
