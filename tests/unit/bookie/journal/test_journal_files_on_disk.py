"""Journal files that are used again, with real threads: the device's, the one that makes files ready, and the one that moves the mark."""

from __future__ import annotations

import asyncio
from pathlib import Path

from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.journal_format import GroupType
from triplicate.bookie.core.ledger_data import LedgerData, encode_states
from triplicate.bookie.journal.closed_journal import ClosedJournal, JournalLimits
from triplicate.bookie.journal.journal import Journal, JournalCallbacks
from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.runtime import TaskScope, real_host

KIB = 1024
LIVES, GROUPS, MARK_EVERY = 3, 400, 23


def journal_in(folder: Path) -> ClosedJournal:
    identity = FileIdentity("bookie-1", "instance", 0, 1)
    return ClosedJournal(real_host("journal").disk, str(folder), identity, JournalLimits(16 * KIB, 64 * KIB, 8 * KIB, spare_files=2))


async def submitted(journal: Journal, number: int) -> bool:
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    state, _ = encode_states([LedgerData(number, b"k" * 20)])
    journal.submit(JournalItem(GroupType.STATES, [state], len(state), 1, then=done.set_result))
    async with asyncio.timeout(20):
        return await done


async def live(folder: Path, failed: list[OSError], first: int) -> list[bytes]:
    """One life: replay, then many groups with a mark that follows; what was replayed."""
    host = real_host("bookie")
    writer, filer, scope = host.new_worker("writer"), host.new_worker("filer"), TaskScope("journal")
    closed = journal_in(folder)
    found = [group.body for group in closed.replay(closed.read_mark())]
    assert closed.replayed.torn is None
    callbacks = JournalCallbacks(on_group=lambda items: None, on_failure=failed.append)
    journal = Journal(host.disk, host.clock, closed.open(resumes=False), callbacks)
    scope.spawn(journal.spares.run(filer), name="files")
    for number in range(first, first + GROUPS):
        assert await submitted(journal, number)
        if number % MARK_EVERY == 0:
            await writer.run(journal.write_mark, journal.synced, 1)
    await journal.close()
    scope.cancel()
    await scope.aclose()
    await filer.close()
    await writer.close()
    return found


def test_files_are_used_again_over_several_lives(tmp_path: Path) -> None:
    failed: list[OSError] = []
    inodes: dict[int, None] = {}
    newest = 0
    for life in range(LIVES + 1):
        found = asyncio.run(live(tmp_path, failed, life * GROUPS))
        # The groups behind the last mark, and nothing else.
        marked = max((number for number in range(life * GROUPS) if number % MARK_EVERY == 0), default=-1)
        assert found == [encode_states([LedgerData(number, b"k" * 20)])[0] for number in range(marked + 1, life * GROUPS)]
        files = [path for path in tmp_path.iterdir() if path.suffix in (".journal", ".spare")]
        assert len(files) <= 8
        inodes.update(dict.fromkeys(path.stat().st_ino for path in files))
        newest = max(int(path.stem) for path in files)
    assert failed == []
    assert newest >= (LIVES + 1) * GROUPS // 16
    # A start begins a file although the one before is not full, and that one is deleted.
    assert len(inodes) < newest // 2
