"""The journal on the operating system's log device: after a group without space a new thread goes on in a new file."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.journal_format import GroupType
from triplicate.bookie.core.ledger_data import LedgerData, encode_states
from triplicate.bookie.journal.closed_journal import ClosedJournal, JournalLimits
from triplicate.bookie.journal.journal import Journal, JournalCallbacks
from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.runtime import Buffer, real_host
from triplicate.runtime.real_disk import RealFile

IDENTITY = FileIdentity("bookie-1", "instance", 0, 1)


def journal_in(folder: Path) -> ClosedJournal:
    return ClosedJournal(real_host("journal").disk, str(folder), IDENTITY, JournalLimits(16 * 1024, 64 * 1024, 8 * 1024))


def test_a_half_written_group_is_cut_off_and_the_journal_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full: list[OSError] = []
    failed: list[OSError] = []
    write = RealFile.pwrite
    strikes = {7, 8, 20}
    groups = 0

    def pwrite(self: RealFile, buffers: Sequence[Buffer], offset: int) -> int:
        nonlocal groups
        if self.path.endswith(".journal") and offset:
            groups += 1
            if groups in strikes:
                # The first half of it gets to the disk.
                data = b"".join(buffers)
                write(self, [data[: len(data) // 2]], offset)
                raise OSError(errno.ENOSPC, "No space left on device", self.path)
        return write(self, buffers, offset)

    async def body() -> list[int]:
        monkeypatch.setattr(RealFile, "pwrite", pwrite)
        host, closed = real_host("journal"), journal_in(tmp_path)
        list(closed.replay(None))
        callbacks = JournalCallbacks(on_group=lambda items: None, on_failure=failed.append, on_full=full.append)
        journal = Journal(host.disk, host.clock, closed.open(resumes=True), callbacks)
        synced = [number for number in range(40) if await submitted(journal, number)]
        await journal.close()
        return synced

    async def submitted(journal: Journal, number: int) -> bool:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        state, _ = encode_states([LedgerData(number, b"k" * 20)])
        journal.submit(JournalItem(GroupType.STATES, [state], len(state), 1, then=done.set_result))
        async with asyncio.timeout(20):
            return await done

    async def replayed() -> list[bytes]:
        return [group.body for group in journal_in(tmp_path).replay(None)]

    synced = asyncio.run(body())
    assert len(synced) == 40 - len(strikes)
    assert (len(full), failed) == (len(strikes), [])
    assert asyncio.run(replayed()) == [encode_states([LedgerData(number, b"k" * 20)])[0] for number in synced]
