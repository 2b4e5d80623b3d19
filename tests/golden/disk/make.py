"""Writes the sample folders that `tests/golden/test_disk.py` opens. Run it only for a new format version, into a new folder.

Usage: make.py storage FOLDER   (as `format-1`: journal, entry logs and index of one directory each)
       make.py whole FOLDER     (as `2026-11`: a replaced bookie with several directories, and the cluster's metadata)
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import shutil
import sys
import tempfile
from pathlib import Path

from triplicate.bookie import Bookie, Replacement
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.journal_format import GroupType
from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.bookie.storage.storage import Storage, StorageCallbacks, StorageWorkers
from triplicate.config import BookieSettings
from triplicate.ledger import DigestType, EnsembleSegment, EntryCodec, LedgerMetadata, LedgerState
from triplicate.metadata import ClusterMetadata, open_cluster
from triplicate.runtime import Host, real_host
from triplicate.wire import add_prefix

IDENTITY = FileIdentity("bookie-1", "3f2c6f0e-7d5b-4d0a-9a41-6a1a0f3f9e55", 0)
LOST, CLOSED, FENCED, BURIED, DELETED, COPIED, TRASHED, LATE, TAIL = 0, 2, 3, 4, 5, 6, 7, 8, 9
"""Ledgers of the whole folder: LOST is older than the replaced disks, BURIED was fenced and then deleted, COPIED was moved by compaction,
LATE is in the log that the kill left open, TAIL in the journal alone. The replacement uses number 1."""
KEY_OF = {ledger_id: EntryCodec(ledger_id, DigestType.CRC32C, b"golden") for ledger_id in range(10)}
TRASH_PERIOD_S = 200 * 365 * 86_400.0


def settings_in(folder: Path) -> BookieSettings:
    return BookieSettings(
        bookie_id="bookie-1",
        journal_directories=(str(folder / "journal"),),
        ledger_directories=(str(folder / "ledgers"),),
        journal_preallocate_bytes=4096,
        entry_log_bytes=4500,
        flush_interval_s=3600.0,
    )


async def storage_in(host: Host, folder: Path) -> Storage:
    def fail(error: OSError) -> None:
        raise error

    return await Storage.open(host, settings_in(folder), IDENTITY, StorageCallbacks(on_failure=fail), StorageWorkers.new(host))


async def add(storage: Storage, ledger_id: int, entry_ids: range, text: bytes = b"entry") -> None:
    handle = await storage.load(ledger_id)
    codec = KEY_OF[ledger_id]
    if not handle.exists:
        handle.master_key = codec.master_key
        storage.ledgers.touch_state(handle)
    entries = [codec.encode(entry_id, entry_id - 1, (entry_id + 1) * 8, b"%s %02d" % (text, entry_id)) for entry_id in entry_ids]
    storage.store(handle, list(entry_ids), entries, entry_ids[-1] - 1, sum(map(len, entries)))
    frames = b"".join(add_prefix(len(entry), 0, codec.master_key) + entry for entry in entries)
    done = asyncio.get_running_loop().create_future()
    item = JournalItem(GroupType.ENTRIES, [frames], len(frames), len(entries), then=done.set_result)
    storage.journal_of(ledger_id).submit(item)
    await done


async def change_state(storage: Storage, handle: LedgerHandle) -> None:
    done = asyncio.get_running_loop().create_future()
    storage.journal_state(handle, done.set_result)
    await done


async def write(folder: Path) -> None:
    host = real_host("golden")
    for kind in ("journal", "ledgers"):
        (folder / kind / "current").mkdir(parents=True)
    storage = await storage_in(host, folder)
    await add(storage, 1, range(10))
    handle = await storage.load(1)
    handle.fenced = True
    handle.explicit_lac = KEY_OF[1].encode_lac(8)
    await change_state(storage, handle)
    await storage.flush()
    await add(storage, 1, range(20, 30))
    await storage.flush()
    await add(storage, 2, range(5))
    third = await storage.load(3)
    third.master_key, third.fenced = KEY_OF[3].master_key, True
    await change_state(storage, third)
    # The state after a kill: the newest entries only in the journal, the newest entry log without a footer.
    with tempfile.TemporaryDirectory() as held:
        shutil.copytree(folder, Path(held) / "copy")
        await storage.close(flush=False)
        shutil.rmtree(folder)
        shutil.copytree(Path(held) / "copy", folder)


def whole_settings() -> BookieSettings:
    """Settings with relative directories, since the cookies name them; a caller changes into the folder first."""
    return BookieSettings(
        bookie_id="bookie-1",
        journal_directories=("journal-1", "journal-2"),
        ledger_directories=("ledgers-1", "ledgers-2"),
        journal_preallocate_bytes=4096,
        entry_log_bytes=5800,
        flush_interval_s=3600.0,
        gc_interval_s=86_400.0,
        compaction_interval_s=86_400.0,
        major_compaction_interval_s=86_400.0,
        reserve_bytes=4096,
        trash_period_s=0.0,
    )


async def whole_cluster(folder: Path, *, create: bool = False) -> ClusterMetadata:
    return await open_cluster(f"sqlite://{folder.resolve()}/metadata/metadata.db", real_host("golden"), create=create)


async def create_ledger(cluster: ClusterMetadata, ledger_id: int, *, last_entry_id: int | None = None) -> None:
    segments = (EnsembleSegment(0, ("bookie-1",)),)
    metadata = LedgerMetadata(1, 1, 1, segments, LedgerState.OPEN, digest_type=DigestType.CRC32C, password=b"golden")
    if last_entry_id is not None:
        metadata = metadata.closed(last_entry_id, 8 * (last_entry_id + 1))
    await cluster.ledgers.create(ledger_id, metadata)


async def fence(storage: Storage, ledger_id: int, explicit_lac: int | None = None) -> None:
    handle = await storage.load(ledger_id)
    handle.master_key, handle.fenced = KEY_OF[ledger_id].master_key, True
    if explicit_lac is not None:
        handle.explicit_lac = KEY_OF[ledger_id].encode_lac(explicit_lac)
    await change_state(storage, handle)


async def lose_the_first_disks(cluster: ClusterMetadata) -> None:
    """The bookie's first life, and its second incarnation on empty directories."""
    host, settings = real_host("golden"), whole_settings()
    bookie = await Bookie.start(host, settings, cluster)
    assert await cluster.ledgers.new_id() == LOST
    await create_ledger(cluster, LOST)
    await add(bookie.storage, LOST, range(3))
    await bookie.stop()
    for directory in (*settings.journal_directories, *settings.ledger_directories):
        shutil.rmtree(directory)
    assert (await Replacement(host, settings, cluster).carry_out()).number == 2


async def fill(cluster: ClusterMetadata) -> None:
    """The second life: several flushes, overlapping runs, deletion, collection, compaction; and a stop, so its logs have footers."""
    bookie = await Bookie.start(real_host("golden"), whole_settings(), cluster)
    storage = bookie.storage
    for ledger_id, last_entry_id in ((CLOSED, 9), (FENCED, None), (BURIED, None), (DELETED, None), (COPIED, 3), (TRASHED, 4)):
        await create_ledger(cluster, ledger_id, last_entry_id=last_entry_id)
    await add(storage, DELETED, range(20))
    await add(storage, BURIED, range(2))
    await add(storage, COPIED, range(4))
    await fence(storage, BURIED)
    await storage.flush()
    await add(storage, CLOSED, range(6))
    await add(storage, FENCED, range(5))
    await fence(storage, FENCED, 3)
    # A recovery writes an earlier entry again.
    await add(storage, LOST, range(2, 3))
    await fence(storage, LOST)
    await storage.flush()
    await add(storage, CLOSED, range(4, 10), b"again")
    await add(storage, TRASHED, range(5))
    await storage.flush()
    for ledger_id in (BURIED, DELETED):
        await cluster.ledgers.delete(ledger_id)
    assert await bookie.collect_garbage() == 2
    assert await bookie.compact(0.5) > 0
    await bookie.stop()


async def leave_much_open(cluster: ClusterMetadata, folder: Path, killed: Path) -> None:
    """The third life, ended by a kill: a ledger in the trash, a log without footer, and entries only in the journal."""
    bookie = await Bookie.start(real_host("golden"), dataclasses.replace(whole_settings(), trash_period_s=86_400.0), cluster)
    storage = bookie.storage
    await create_ledger(cluster, LATE)
    await create_ledger(cluster, TAIL)
    await cluster.trash.delete(TRASHED, TRASH_PERIOD_S)
    assert await bookie.collect_garbage() == 0
    await add(storage, LATE, range(3))
    await storage.flush()
    await add(storage, LATE, range(3, 6))
    await add(storage, TAIL, range(4))
    await fence(storage, TAIL, 2)
    shutil.copytree(folder, killed, ignore=shutil.ignore_patterns("metadata", "LOCK"))
    await bookie.stop()


async def write_whole(folder: Path) -> None:
    (folder / "metadata").mkdir(parents=True)
    with tempfile.TemporaryDirectory() as held, contextlib.chdir(folder):
        killed = Path(held) / "killed"
        cluster = await whole_cluster(folder, create=True)
        try:
            await lose_the_first_disks(cluster)
            await fill(cluster)
            await leave_much_open(cluster, folder, killed)
        finally:
            await cluster.aclose()
        for directory in killed.iterdir():
            shutil.rmtree(folder / directory.name)
            shutil.copytree(directory, folder / directory.name)


if __name__ == "__main__":
    kind, target = sys.argv[1:]
    asyncio.run({"storage": write, "whole": write_whole}[kind](Path(target).resolve()))
