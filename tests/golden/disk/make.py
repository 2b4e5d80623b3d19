"""Writes the sample folder that `tests/golden/test_disk.py` opens. Run it only for a new format version, into a new folder.

Usage: make.py FOLDER
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.journal import GroupType
from triplicate.bookie.journal import JournalItem
from triplicate.bookie.ledgers import LedgerHandle
from triplicate.bookie.storage import Storage
from triplicate.config import BookieSettings
from triplicate.ledger import DigestType, EntryCodec
from triplicate.runtime import Host, real_host
from triplicate.wire import add_prefix

IDENTITY = FileIdentity("bookie-1", "3f2c6f0e-7d5b-4d0a-9a41-6a1a0f3f9e55", 0)
KEY_OF = {ledger_id: EntryCodec(ledger_id, DigestType.CRC32C, b"golden") for ledger_id in (1, 2, 3)}


def settings_in(folder: Path) -> BookieSettings:
    return BookieSettings(
        bookie_id="bookie-1",
        journal_directories=(str(folder / "journal"),),
        ledger_directories=(str(folder / "ledgers"),),
        journal_preallocate_bytes=4096,
        entry_log_bytes=4500,
        flush_interval_s=3600.0,
    )


def storage_in(host: Host, folder: Path) -> Storage:
    def fail(error: OSError) -> None:
        raise error

    return Storage(host, settings_in(folder), IDENTITY, on_group=lambda items: None, on_failure=fail, on_full_disk=lambda full: None)


async def add(storage: Storage, ledger_id: int, entry_ids: range) -> None:
    handle = await storage.load(ledger_id)
    codec = KEY_OF[ledger_id]
    if not handle.exists:
        handle.master_key = codec.master_key
        storage.ledgers.touch_state(handle)
    entries = [codec.encode(entry_id, entry_id - 1, (entry_id + 1) * 8, b"entry %02d" % entry_id) for entry_id in entry_ids]
    storage.store(handle, list(entry_ids), entries, entry_ids[-1] - 1)
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
    storage = storage_in(host, folder)
    await storage.open()
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
    # What a kill would leave behind: the newest entries only in the journal, the newest entry log without a footer.
    with tempfile.TemporaryDirectory() as held:
        shutil.copytree(folder, Path(held) / "copy")
        await storage.close(flush=False)
        shutil.rmtree(folder)
        shutil.copytree(Path(held) / "copy", folder)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
