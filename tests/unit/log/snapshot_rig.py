"""Snapshots of content that a test makes up."""

from __future__ import annotations

from triplicate.log import CHUNK_BYTES, Logs, Snapshot, SnapshotHeader

NAME = "l"
IDENTITY = "ab" * 16


def make_snapshot(position: int) -> Snapshot:
    """A listed snapshot without a ledger."""
    digest = "sha256:" + "0" * 64
    return Snapshot(f"{position:032x}", 1000 + position, position, 1, 1_700_000_000_000, 10, 12, 1, digest, "sql", "sqlite", IDENTITY, "n1")


async def header_of(logs: Logs, position: int) -> SnapshotHeader:
    door = logs.snapshots(NAME)
    log_id, compression = await door.header_fields()
    facts = {"page_size": 4096}
    return SnapshotHeader(door.new_id(), log_id, position, 3, 1_700_000_000_000, "sql", "sqlite", IDENTITY, "n1", compression, facts)


async def write_snapshot(logs: Logs, content: bytes, *, position: int, fail: bool = False) -> Snapshot:
    """A snapshot's ledger, closed and not listed."""
    async with await logs.snapshots(NAME).writer(await header_of(logs, position)) as writer:
        for start in range(0, len(content), CHUNK_BYTES):
            await writer.append(content[start : start + CHUNK_BYTES])
        if fail:
            raise RuntimeError("given up")
        return await writer.finish()


async def content_of(logs: Logs, snapshot: Snapshot) -> bytes:
    async with logs.snapshots(NAME).open(snapshot) as reader:
        header = await reader.header()
        assert (header.position, header.facts) == (snapshot.position, {"page_size": 4096})
        return b"".join([bytes(chunk) async for chunk in reader.chunks()])
