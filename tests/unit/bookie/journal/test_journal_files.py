"""Journal files that are used again: what they held before never counts, and no crash at any step of it loses a group."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.crash.cuts import Bound, cuts_of
from tests.crash.machine import Machine, empty_disk
from tests.crash.medium import Image, Medium
from tests.unit.bookie.bookie_rig import Rig, run_rig
from triplicate.bookie.core.file_header import HEADER_BYTES, JOURNAL_MAGIC, FileIdentity, decode_file_header, encode_file_header
from triplicate.bookie.core.journal_format import ALIGNMENT, END_BLOCK, REUSED_KEY, GroupType, encode_group
from triplicate.bookie.core.journal_machine import NextFile
from triplicate.bookie.directories import Directories
from triplicate.bookie.journal.closed_journal import ClosedJournal, JournalLimits
from triplicate.bookie.journal.journal_files import PIECE_BYTES, JournalFiles
from triplicate.errors import CorruptionError
from triplicate.ledger import DigestType, EntryCodec
from triplicate.runtime import Buffer, Disk, File
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY, small_bookie_settings

IDENTITY = FileIdentity("bookie-1", "instance", 0, 1)
DIRECTORY = "/journal"
FILE_BYTES = 5 * ALIGNMENT
CURRENT = JOURNAL_DIRECTORY + "/current"
CODEC = EntryCodec(5, DigestType.CRC32C, b"")


def files_on(disk: Disk, *, spares_max: int = 2, file_bytes: int = FILE_BYTES) -> JournalFiles:
    return JournalFiles(disk, DIRECTORY, IDENTITY, preallocate_bytes=8192, file_bytes=file_bytes, spares_max=spares_max)


def journal_on(machine: Machine, spare_files: int = 2) -> ClosedJournal:
    return ClosedJournal(machine.disk, DIRECTORY, IDENTITY, JournalLimits(8192, FILE_BYTES, 4096, spare_files))


def new_machine(image: Image | None = None) -> Machine:
    return Machine(Medium(image if image is not None else empty_disk([DIRECTORY])))


@dataclass
class Writer:
    """Writes groups into files as the journal does, one by one, and keeps a book of which are synced."""

    machine: Machine
    files: JournalFiles
    chosen: NextFile = field(default_factory=lambda: NextFile(0, "", 0, 0, False))
    file: File | None = None
    offset: int = 0
    sequence: int = 0
    synced: list[tuple[int, int]] = field(default_factory=list)
    """(operations so far, sequence)"""
    retired: list[tuple[int, int]] = field(default_factory=list)
    """(operations before it, first sequence that is still needed)"""

    def roll(self) -> None:
        self.chosen, self.file = self.files.start_next(self.chosen.number)
        self.offset = HEADER_BYTES

    def write(self, count: int) -> None:
        assert self.file is not None
        for _ in range(count):
            self.sequence += 1
            buffers: list[Buffer] = encode_group(GroupType.STATES, self.chosen.number, self.sequence, 0, [b"%d" % self.sequence * 300])
            self.offset += ALIGNMENT
            if self.offset < self.chosen.stale_end:
                buffers.append(END_BLOCK)
            self.file.pwrite(buffers, self.offset - ALIGNMENT)
            self.file.sync()
            self.synced.append((self.machine.disk.medium.count, self.sequence))

    def retire(self) -> None:
        first = self.sequence - (self.offset - HEADER_BYTES) // ALIGNMENT + 1
        self.retired.append((self.machine.disk.medium.count, first))
        self.files.retire(self.chosen.number, self.chosen.number)


def writer_of_several_lives() -> Writer:
    """Files new, full, retired, used again, in full and in part, made ready ahead and at once; and one prepared."""
    machine = new_machine()
    writer = Writer(machine, files_on(machine.disk))
    writer.files.open(0)
    writer.roll()
    writer.write(1)
    assert writer.files.begin_preparing()
    assert writer.files.prepare_piece(0)
    writer.files.finish_preparing()
    assert writer.files.make_ready(writer.chosen.number)
    for filled in (4, 4, 2, 4, 1):
        writer.roll()
        writer.write(1)
        writer.retire()
        writer.write(filled - 1)
        writer.files.make_ready(writer.chosen.number)
    return writer


def replayed(image: Image) -> list[int]:
    """Sequences of the groups that a start finds on a disk; it may look at it twice."""
    machine = new_machine(image)
    try:
        found = [group.sequence for group in journal_on(machine).replay(None)]
        journal = journal_on(machine)
        again = [group.sequence for group in journal.replay(None)]
        assert again == found
        journal.open(resumes=False)
        for path, number in machine.disk.medium.live.names.items():
            block = bytes(machine.disk.medium.live.files.get(number, b"")[:HEADER_BYTES])
            # A file made from nothing may have its name before its header, or a part of that.
            if path.endswith(".journal") and any(block):
                with contextlib.suppress(CorruptionError):
                    header = decode_file_header(block, JOURNAL_MAGIC, path)
                    assert path.endswith(f"{header.number:016}.journal"), (path, header)
        return found
    finally:
        machine.close()


def test_a_crash_at_any_step_of_using_files_again_loses_no_group_and_brings_none_back() -> None:
    writer = writer_of_several_lives()
    medium = Medium(empty_disk([DIRECTORY]))
    bound, tried = Bound(24, 24), 0
    for place, operation in enumerate(writer.machine.disk.record, 1):
        medium.apply(operation)
        needed = max([1, *(first for at, first in writer.retired if at < place)])
        synced = max([0, *(sequence for at, sequence in writer.synced if at <= place)])
        for cut in cuts_of(medium.pending, bound, place):
            tried += 1
            image = medium.copy().live if cut.kind == "kept" else medium.cut(cut.kept, dict(cut.torn))
            found = replayed(image)
            where = (place, operation, cut, found)
            assert found == sorted(found), where
            assert set(range(needed, synced + 1)) <= set(found), where
            assert max([0, *found]) <= synced + 1, where
    assert tried > 300
    writer.machine.close()


def test_a_finished_file_comes_back_under_a_new_number_and_is_never_extended() -> None:
    writer = writer_of_several_lives()
    names = writer.machine.disk.medium.live.names
    assert writer.chosen.number > 5
    assert writer.chosen.stale_end == FILE_BYTES
    inodes = {number for path, number in names.items() if path != "/" and number}
    # The first, which was not prepared, the prepared one, and one more that was made while there was no spare.
    assert len(inodes) <= 4
    assert all(len(writer.machine.disk.medium.live.files[number]) == FILE_BYTES for number in inodes)
    header = decode_file_header(bytes(writer.machine.disk.medium.live.file(writer.chosen.path)[:HEADER_BYTES]), JOURNAL_MAGIC, "")
    assert header == FileIdentity("bookie-1", "instance", writer.chosen.number, 1, {REUSED_KEY: True})
    writer.machine.close()


def spare(disk: Disk, number: int, content: bytes) -> str:
    path = f"{DIRECTORY}/{number:016}.spare"
    file = disk.open(path, create=True)
    file.pwrite([content], 0)
    file.sync()
    disk.sync_directory(DIRECTORY)
    return path


def header_of(identity: FileIdentity) -> bytes:
    return encode_file_header(JOURNAL_MAGIC, identity).ljust(FILE_BYTES, b"x")


@pytest.mark.parametrize(
    "content",
    [
        bytes(FILE_BYTES - ALIGNMENT),
        bytes(FILE_BYTES + ALIGNMENT),
        b"x" * FILE_BYTES,
        header_of(FileIdentity("bookie-2", "instance", 3, 1)),
        header_of(FileIdentity("bookie-1", "another", 3, 1)),
        header_of(FileIdentity("bookie-1", "instance", 300, 1)),
        header_of(FileIdentity("bookie-1", "instance", 4, 1)),
    ],
    ids=["short", "long", "damaged", "another bookie's", "another cluster's", "of a later number", "of the next number"],
)
def test_a_spare_that_may_hold_what_could_count_is_deleted(content: bytes) -> None:
    machine = new_machine()
    path = spare(machine.disk, 3, content)
    files = files_on(machine.disk)
    assert files.highest_number() == 3
    files.open(3)
    chosen, _ = files.start_next(3)
    assert (chosen.number > 3, chosen.stale_end, chosen.written) == (True, 0, False)
    assert not machine.disk.exists(path)
    machine.close()


def test_a_file_gets_a_higher_number_than_any_spare() -> None:
    machine = new_machine()
    spare(machine.disk, 7, header_of(FileIdentity("bookie-1", "instance", 7, 1)))
    journal = journal_on(machine)
    assert list(journal.replay(None)) == []
    assert journal.open(resumes=False).synced.file_number == 8
    assert machine.disk.names(DIRECTORY) == ["0000000000000008.journal"]
    machine.close()


def test_no_spares_are_kept_where_none_are_wanted() -> None:
    machine = new_machine()
    for number in (3, 4):
        spare(machine.disk, number, header_of(FileIdentity("bookie-1", "instance", number, 1)))
    machine.disk.open(f"{DIRECTORY}/prepared.new", create=True).sync()
    files = files_on(machine.disk, spares_max=0)
    files.open(4)
    assert machine.disk.names(DIRECTORY) == []
    assert not files.begin_preparing()
    machine.close()


def test_only_so_many_spares_are_kept_and_only_of_the_right_size() -> None:
    machine = new_machine()
    files = files_on(machine.disk)
    for number in range(1, 6):
        size = FILE_BYTES if number != 2 else FILE_BYTES - ALIGNMENT
        file = machine.disk.open(f"{DIRECTORY}/{number:016}.journal", create=True)
        file.pwrite([bytes(size)], 0)
    files.open(5)
    files.retire(5, 5)
    assert machine.disk.names(DIRECTORY) == ["0000000000000001.spare", "0000000000000003.spare", "0000000000000005.journal"]
    machine.close()


def test_spares_are_given_back_while_space_is_short_but_for_the_file_that_comes_next() -> None:
    machine = new_machine()
    files = files_on(machine.disk)
    for number in (1, 2):
        spare(machine.disk, number, header_of(FileIdentity("bookie-1", "instance", number, 1)))
    files.open(2)
    files.set_short_of_space(True, 2)
    assert machine.disk.names(DIRECTORY) == ["0000000000000001.spare"]
    assert not files.begin_preparing()
    assert files.make_ready(2)
    spare(machine.disk, 1, header_of(FileIdentity("bookie-1", "instance", 1, 1)))
    files.open(3)
    files.set_short_of_space(True, 2)
    assert machine.disk.names(DIRECTORY) == ["0000000000000003.journal"], "the one made ready is the one that comes next"
    files.set_short_of_space(False, 3)
    assert files.begin_preparing()
    machine.close()


def test_no_spare_is_made_while_more_files_wait_for_a_flush_than_are_kept() -> None:
    machine = new_machine()
    files = files_on(machine.disk)
    files.open(0)
    for number in range(3):
        assert files.begin_preparing()
        machine.disk.delete(f"{DIRECTORY}/prepared.new")
        files.start_next(number)
    files.start_next(3)
    assert not files.begin_preparing()
    machine.close()


def test_a_spare_in_the_making_goes_when_space_runs_out() -> None:
    machine = new_machine()
    files = files_on(machine.disk, file_bytes=4 * PIECE_BYTES)
    files.open(0)
    assert files.begin_preparing()
    assert files.prepare_piece(0)
    files.set_short_of_space(True, 0)
    assert not files.prepare_piece(PIECE_BYTES)
    assert machine.disk.names(DIRECTORY) == []
    machine.close()


# On a whole bookie.


async def add_all(rig: Rig, entry_ids: range, size: int = 8000) -> None:
    client = await rig.connect()
    for entry_id in entry_ids:
        assert await client.add(CODEC, entry_id, b"%d" % entry_id * (size // len(b"%d" % entry_id))) is Status.OK


async def check_all(rig: Rig, last: int) -> None:
    client = await rig.connect()
    for entry_id in range(last + 1):
        assert (await client.read(5, entry_id)).status is Status.OK, entry_id


def journal_inodes(rig: Rig) -> dict[str, int]:
    return {name: id(rig.disk.names.live[f"{CURRENT}/{name}"]) for name in rig.files(CURRENT) if name.endswith((".journal", ".spare"))}


def spares(rig: Rig) -> list[str]:
    return [name for name in rig.files(CURRENT) if name.endswith(".spare")]


def test_a_busy_bookie_writes_into_the_same_few_files() -> None:
    async def body(rig: Rig) -> None:
        seen: dict[int, None] = {}
        for first in range(0, 300, 20):
            await add_all(rig, range(first, first + 20))
            await rig.bookie.storage.flush()
            seen.update(dict.fromkeys(journal_inodes(rig).values()))
        assert int(max(journal_inodes(rig)).partition(".")[0]) > 30
        # Beside those of the pool the first one, which was given up for one that was written before.
        assert len(seen) <= 6
        for keep_unsynced in (True, False):
            await rig.restart(keep_unsynced=keep_unsynced)
            await check_all(rig, 299)
        assert not rig.facts("bookie.torn_tail"), "the earlier content of a file is not reported as torn"

    run_rig(body, journal_file_bytes=64 * 1024, journal_preallocate_bytes=16 * 1024, flush_interval_s=3600.0)


def test_a_bookie_that_nobody_writes_to_prepares_nothing() -> None:
    async def body(rig: Rig) -> None:
        await add_all(rig, range(1), 100)
        await asyncio.sleep(60)
        assert [name for name in rig.files(CURRENT) if name.endswith(".journal")] == ["0000000000000001.journal"]
        assert not [name for name in rig.files(CURRENT) if "spare" in name or "prepared" in name]

    run_rig(body)


def test_a_damaged_last_group_in_a_file_used_again_is_a_torn_tail() -> None:
    async def body(rig: Rig) -> None:
        await add_all(rig, range(60))
        await rig.bookie.storage.flush()
        await add_all(rig, range(60, 62), 100)
        end = rig.bookie.storage.journals[0].synced
        path = f"{CURRENT}/{end.file_number:016}.journal"
        assert b'"reused":true' in rig.disk.names.live[path].live.read(4096, 0)
        rig.node.crash()
        rig.disk.flip_bit(path, end.offset - ALIGNMENT + 60)
        await rig.node.start()
        (fact,) = rig.facts("bookie.torn_tail")
        assert dict(fact.facts) == {"path": path, "offset": end.offset - ALIGNMENT}
        await check_all(rig, 60)

    run_rig(body, journal_file_bytes=64 * 1024, journal_preallocate_bytes=16 * 1024, flush_interval_s=3600.0)


def test_a_full_disk_gets_the_spares() -> None:
    async def body(rig: Rig) -> None:
        await add_all(rig, range(40))
        await rig.bookie.storage.flush()
        assert len(spares(rig)) == 2, "several files were covered by one flush"
        rig.disk.fill()
        await asyncio.sleep(3)
        assert rig.bookie.read_only
        assert len(spares(rig)) == 1, "that which comes next, as none is ready"
        rig.disk.relieve()
        await asyncio.sleep(3)
        await add_all(rig, range(40, 80))
        await rig.bookie.storage.flush()
        assert len(spares(rig)) == 2
        await rig.restart()
        await check_all(rig, 79)

    settings: dict[str, Any] = {"write_cache_bytes": 8 << 20, "disk_check_interval_s": 0.3, "flush_interval_s": 3600.0}
    run_rig(body, journal_file_bytes=64 * 1024, journal_preallocate_bytes=16 * 1024, **settings)


def test_a_spare_counts_as_data_of_the_bookie() -> None:
    async def body(rig: Rig) -> None:
        for name in rig.files(CURRENT):
            rig.disk.names.live.pop(f"{CURRENT}/{name}")
        disk = rig.client_host.port.disk
        current = f"{JOURNAL_DIRECTORY}/current"
        disk.mkdir(current)
        disk.open(f"{current}/0000000000000004.spare", create=True)
        assert Directories(disk, small_bookie_settings("bookie-1")).data_in(JOURNAL_DIRECTORY) == ["0000000000000004.spare"]

    run_rig(body)


@pytest.mark.parametrize("seed", range(8))
def test_what_was_acknowledged_survives_power_cuts_while_files_are_used_again(seed: int) -> None:
    chance = random.Random(seed)

    async def body(rig: Rig) -> None:
        last = -1
        for _ in range(8):
            count = chance.randrange(3, 40)
            await add_all(rig, range(last + 1, last + 1 + count), chance.choice([100, 4000, 9000, 30_000]))
            last += count
            if chance.random() < 0.6:
                await rig.bookie.storage.flush()
            await rig.restart()
            await check_all(rig, last)

    run_rig(body, seed, journal_file_bytes=64 * 1024, journal_preallocate_bytes=16 * 1024, flush_interval_s=3600.0)
