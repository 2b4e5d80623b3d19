"""Data folders as killed bookies left them: every later release opens them.

`format-1` is of the first release that wrote any; `2026-11` has several directories, a second incarnation, deleted ledgers and copies.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from tests.golden.disk.make import (
    BURIED,
    CLOSED,
    COPIED,
    DELETED,
    FENCED,
    KEY_OF,
    LATE,
    LOST,
    TAIL,
    TRASHED,
    storage_in,
    whole_cluster,
    whole_settings,
)
from triplicate.bookie import Bookie, Inspection, rebuild_index
from triplicate.bookie.storage.index import Index
from triplicate.bookie.storage.storage import Storage
from triplicate.client import Client
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import real_host
from triplicate.runtime.real_disk import RealDisk

FORMAT_1 = Path(__file__).parent / "disk" / "format-1"
WHOLE = Path(__file__).parent / "disk" / "2026-11"
EXPECTED: dict[int, tuple[tuple[int, ...], bool, int | None]] = {
    LOST: ((2,), True, None),
    CLOSED: (tuple(range(10)), False, None),
    FENCED: (tuple(range(5)), True, 3),
    COPIED: (tuple(range(4)), False, None),
    TRASHED: (tuple(range(5)), False, None),
    LATE: (tuple(range(6)), False, None),
    TAIL: (tuple(range(4)), True, 2),
}
"""Contents of the whole folder: each ledger's entries, its fence, and its explicit last-add-confirmed."""


async def check(folder: Path) -> None:
    storage = await storage_in(real_host("golden"), folder)
    try:
        for ledger_id, entry_ids in ((1, [*range(10), *range(20, 30)]), (2, list(range(5)))):
            for entry_id in entry_ids:
                body = storage.read(ledger_id, entry_id)
                assert body is not None
                assert KEY_OF[ledger_id].decode(body, entry_id).payload == b"entry %02d" % entry_id
            handle = await storage.load(ledger_id)
            assert handle.last_entry_id == entry_ids[-1]
            assert handle.master_key == KEY_OF[ledger_id].master_key
        assert storage.read(1, 15) is None
        first, third = await storage.load(1), await storage.load(3)
        assert first.fenced
        assert first.explicit_lac is not None
        assert KEY_OF[1].decode_lac(first.explicit_lac) == 8
        assert third.fenced
        assert third.last_entry_id == -1
        assert not (await storage.load(2)).fenced
        assert not (await storage.load(4)).exists
    finally:
        await storage.close(flush=True)


@pytest.mark.parametrize("with_index", [True, False])
def test_the_folder_of_format_1_opens_with_everything_in_it(tmp_path: Path, with_index: bool) -> None:
    folder = tmp_path / "data"
    shutil.copytree(FORMAT_1, folder)
    if not with_index:
        for name in ("index.db", "index.db-commits"):
            (folder / "ledgers" / "current" / name).unlink()
    asyncio.run(check(folder))
    # Again, now on the folder as this release has left it.
    asyncio.run(check(folder))


def index_of(folder: Path) -> Index:
    return Index(RealDisk(), str(folder / "ledgers-1" / "current" / "index.db"), 1 << 20)


def test_the_whole_folder_has_its_intended_contents(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(WHOLE, folder)
    logs = {path.stem: path.read_bytes() for path in folder.glob("ledgers-*/current/*.entries")}
    finished = [data[-20:-16] == b"TPET" for _, data in sorted(logs.items())]
    assert finished == [True, True, True, False]
    assert len({path.parent for path in folder.glob("ledgers-*/current/*.entries")}) == 2
    assert not any(path.stem == f"{1:016d}" for path in folder.glob("ledgers-*/current/*.entries")), "compaction took the first"
    # A deleted ledger's state record: version 2, fenced and deleted, with a key of 20 bytes.
    tombstone = b"\x02\x09\x00\x14" + BURIED.to_bytes(8, "big")
    assert any(tombstone in data for data in logs.values())
    assert all(b'"incarnation":2' in data[:4096] for data in logs.values())
    index = index_of(folder)
    try:
        assert index.fact("version") == 2
        assert list(index.missing()) == [TRASHED]
        assert index.tombstones() == 1
        [(log, copy)] = index.runs_of(COPIED)
        assert copy.flush_number < min(block.flush_number for _, block in index.runs_of(CLOSED))
        assert log > min(other for other, _ in index.runs_of(CLOSED))
    finally:
        index.close()
    for journal in ("journal-1", "journal-2"):
        mark = (folder / journal / "current" / "mark").read_bytes()
        number, offset = (int.from_bytes(mark[start : start + 8], "big") for start in (12, 20))
        data = (folder / journal / "current" / f"{number:016d}.journal").read_bytes()
        assert data[offset : offset + 4] == b"TPJG", "groups stand behind the mark"


async def check_whole(storage: Storage, *, rebuilt: bool) -> dict[int, list[bytes | None]]:
    """Compare the contents with `EXPECTED`; return the stored entries."""
    # Only the index records the deletion of an unfenced ledger: a rebuilt index lists the ledger until the next collection.
    assert await storage.ledger_ids() == sorted([*EXPECTED, *([DELETED] if rebuilt else [])])
    found: dict[int, list[bytes | None]] = {}
    for ledger_id, (entry_ids, fenced, explicit_lac) in EXPECTED.items():
        codec, handle = KEY_OF[ledger_id], await storage.load(ledger_id)
        assert handle.master_key == codec.master_key
        assert handle.last_entry_id == entry_ids[-1]
        assert handle.fenced is fenced, ledger_id
        # A ledger in the trash may be older than the lost disks.
        assert handle.limbo is (ledger_id in (LOST, TRASHED)), ledger_id
        assert (None if handle.explicit_lac is None else codec.decode_lac(handle.explicit_lac)) == explicit_lac
        bodies = found[ledger_id] = [storage.read(ledger_id, entry_id) for entry_id in range(handle.last_entry_id + 2)]
        assert tuple(entry_id for entry_id, body in enumerate(bodies) if body is not None) == entry_ids
        for entry_id, body in enumerate(bodies):
            if body is not None:
                text = b"again" if ledger_id == CLOSED and entry_id >= 4 else b"entry"
                assert codec.decode(body, entry_id).payload == b"%s %02d" % (text, entry_id)
    buried, deleted = await storage.load(BURIED), await storage.load(DELETED)
    assert buried.tombstone is not None
    assert not buried.exists
    assert deleted.exists is rebuilt
    assert (deleted.tombstone, deleted.last_entry_id) == (None, -1)
    assert storage.read(DELETED, 0) is storage.read(BURIED, 0) is None
    return found


async def start_and_check(cluster: ClusterMetadata, *, rebuilt: bool = False) -> dict[int, list[bytes | None]]:
    host = real_host("golden")
    assert list(Inspection(host, whole_settings(), "bookie-1", cluster.instance_id).problems()) == []
    bookie = await Bookie.start(host, whole_settings(), cluster)
    try:
        return await check_whole(bookie.storage, rebuilt=rebuilt)
    finally:
        await bookie.stop()


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    shutil.copytree(WHOLE, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("index", ["as it is", "lost", "rebuilt"])
def test_the_whole_folder_opens_with_everything_in_it(whole: Path, index: str) -> None:
    async def body() -> None:
        cluster = await whole_cluster(whole)
        try:
            assert (await cluster.incarnations.get("bookie-1")).number == 2
            if index == "lost":
                for path in whole.glob("ledgers-1/current/index.db*"):
                    path.unlink()
            elif index == "rebuilt":
                report = await rebuild_index(real_host("golden"), whole_settings(), cluster)
                assert (report.logs, report.ledgers, report.replayed_groups) == (5, len(EXPECTED) + 1, 3)
            rebuilt = index != "as it is"
            first = await start_and_check(cluster, rebuilt=rebuilt)
            # Again, now on the folder as this release has left it.
            assert await start_and_check(cluster, rebuilt=rebuilt) == first
        finally:
            await cluster.aclose()

    asyncio.run(body())


def test_the_rebuilt_index_of_the_whole_folder_equals_the_one_that_was_written(whole: Path) -> None:
    async def body() -> None:
        cluster = await whole_cluster(whole)
        try:
            # Both then contain the journal's tail, in a log of this release.
            await start_and_check(cluster)
            before = rows_of(whole)
            await rebuild_index(real_host("golden"), whole_settings(), cluster)
            assert rows_of(whole) == before
        finally:
            await cluster.aclose()

    asyncio.run(body())


def rows_of(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the index that derives from logs and journals."""
    index = index_of(folder)
    try:
        tables = {table: sorted(index._rows(f"SELECT * FROM {table}")) for table in ("ledgers", "runs", "deleted")}
    finally:
        index.close()
    tables["ledgers"] = [row for row in tables["ledgers"] if row[0] != DELETED]
    return tables


def test_the_metadata_of_the_whole_folder_serves_clients(whole: Path) -> None:
    async def body() -> None:
        host, cluster = real_host("golden"), await whole_cluster(whole)
        try:
            bookie = await Bookie.start(host, whole_settings(), cluster)
            async with Client(host, cluster) as client:
                assert await cluster.trash.ledger_ids() == [TRASHED]
                assert (await client.undelete(TRASHED)).last_entry_id == 4
                for ledger_id in (CLOSED, COPIED, TRASHED):
                    entry_ids = EXPECTED[ledger_id][0]
                    reader = await client.open(ledger_id, password=b"golden")
                    entries = await reader.read(0, entry_ids[-1])
                    assert [int(re.sub(rb"\D", b"", entry.payload)) for entry in entries] == list(entry_ids)
                # A ledger older than the lost disks must not be closed here; the others are recovered.
                for ledger_id in (LATE, FENCED):
                    reader = await client.recover(ledger_id, password=b"golden")
                    assert reader.last_add_confirmed == EXPECTED[ledger_id][0][-1]
            await bookie.stop()
        finally:
            await cluster.aclose()

    asyncio.run(body())
