"""The journal's machines over a model of a disk, in random orders of events: nothing synced is lost, and no start finds a gap.

Groups are formed, refused for lack of space, torn and synced; processes are killed, power is cut, marks move and files are retired.
After each life `JournalReplay` reads the model's disk. Checked: every item answered after its sync is found, in order and once; groups are
numbered without a gap; no item acknowledged before its sync is refused; only a file's first group may cross the file's end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.core.journal_format import ALIGNMENT, GROUP_HEADER_BYTES, GroupPosition, GroupType, JournalGroup, padded
from triplicate.bookie.core.journal_machine import (
    FailJournal,
    FileStarted,
    GroupCommit,
    GroupDue,
    GroupFormer,
    GroupRefused,
    GroupSynced,
    JournalCloseRequested,
    NextFile,
    RemoveTail,
    ResumeBehind,
    StartFile,
    TailRemoved,
    WriteFailed,
    WriteGroup,
    wants_file,
)
from triplicate.bookie.core.journal_mark import JournalMark
from triplicate.bookie.core.journal_replay import FileEnded, GroupRead, GroupRewritten, JournalReplay, ReadFile, ReplayFinished

FILE_BYTES = 6 * ALIGNMENT
GROUP_BYTES = ALIGNMENT
PREALLOCATE_BYTES = 2 * ALIGNMENT
STEPS = 120


@dataclass(eq=False)
class Item:
    number: int
    kind: GroupType | None
    size_bytes: int
    count: int
    early: bool


@dataclass
class Written:
    """A group on the model's disk."""

    offset: int
    end: GroupPosition
    body_bytes: int
    items: list[int]
    durable: bool


@dataclass
class ModelFile:
    groups: list[Written] = field(default_factory=list)
    written: bool = False


class NoSpace(Exception):
    """Raised if the model's disk is full."""


class Life:
    """One process: both machines of the journal, and the waiting items."""

    def __init__(self, former: GroupFormer, commit: GroupCommit) -> None:
        self.former = former
        self.commit = commit
        self.waiting: list[Item] = []


class World:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.files: dict[int, ModelFile] = {}
        self.next_number = 1
        self.next_item = 0
        self.mark: JournalMark | None = None
        self.answered: dict[int, int] = {}
        """Item → sequence, for items whose group was synced or replayed."""
        self.life = self.start()

    # Beginning and end of a life.

    def start(self) -> Life:
        replay = JournalReplay("/journal", self.mark, self.files)
        found: list[int] = []
        command = replay.begin()
        while not isinstance(command, ReplayFinished):
            if isinstance(command, ReadFile):
                following = replay.step(self.read(replay, command, found))
            else:
                file = self.files[command.group.file_number]
                (newest,) = [group for group in file.groups if group.offset == command.group.offset]
                assert newest is file.groups[-1], "nothing stands behind the newest group"
                newest.durable = True
                following = replay.step(GroupRewritten())
            assert following is not None
            command = following
        self.check(found)
        end = command.end
        number = max([0, *self.files, end.file_number if end is not None else 0])
        sequence = end.sequence if end is not None else 0
        former = GroupFormer(
            file_bytes=FILE_BYTES, group_bytes=GROUP_BYTES, preallocate_bytes=PREALLOCATE_BYTES, number=number, sequence=sequence
        )
        synced = end
        if end is None or self.rng.random() < 0.8:
            started = self.new_file()
            former.step(FileStarted(started))
            synced = GroupPosition(started.number, HEADER_BYTES, sequence)
        assert synced is not None
        return Life(former, GroupCommit(synced, resumes=True))

    def read(self, replay: JournalReplay, command: ReadFile, found: list[int]) -> FileEnded:
        offset, sequence = command.start, command.after_sequence
        for group in self.files[command.number].groups:
            if group.offset < command.start:
                continue
            assert group.offset == offset, "a hole in a file"
            assert sequence is None or group.end.sequence == sequence + 1, "a gap between groups"
            offset, sequence = group.end.offset, group.end.sequence
            replay.step(GroupRead(JournalGroup(GroupType.STATES, command.number, sequence, 1, group.offset, bytes(group.body_bytes))))
            found += group.items
            self.answered.update(dict.fromkeys(group.items, sequence))
        return FileEnded(None)

    def check(self, found: list[int]) -> None:
        assert found == sorted(set(found)), "items in order, each once"
        covered = self.mark.sequence if self.mark is not None else 0
        needed = {item for item, sequence in self.answered.items() if sequence > covered}
        assert needed <= set(found), "an answered item is lost"

    def end_life(self) -> None:
        """Kill the process, perhaps with the machine."""
        if self.rng.random() < 0.6:
            for file in self.files.values():
                file.groups = [group for group in file.groups if group.durable or self.rng.random() < 0.5]
                for group in file.groups:
                    group.durable = True
        self.life = self.start()

    # Steps.

    def submit(self) -> None:
        kind = self.rng.choice([GroupType.ENTRIES, GroupType.ENTRIES, GroupType.STATES, None])
        size = self.rng.choice([10, 1500, 4000, 9000, 30_000]) if kind is not None else 0
        item = Item(self.next_item, kind, size, 1 if kind is not None else 0, kind is GroupType.ENTRIES and self.rng.random() < 0.2)
        self.next_item += 1
        self.life.waiting.append(item)
        self.life.commit.submitted(size)

    def group(self) -> None:
        life = self.life
        if not life.waiting:
            return
        acknowledged = False
        group: list[Item] = []
        try:
            command = self.place()
            group = life.waiting[: command.items]
            self.check_write(command, group)
            written = self.write(command, group)
            acknowledged = command.early
            if acknowledged and self.rng.random() < 0.1:
                raise NoSpace
        except NoSpace:
            self.refuse(acknowledged)
            return
        written.durable = True
        del life.waiting[: command.items]
        life.commit.step(GroupSynced(len(group), sum(item.size_bytes for item in group), command.end))
        self.answered.update({item.number: command.end.sequence for item in group})
        assert life.commit.synced == command.end

    def place(self) -> WriteGroup:
        former = self.life.former
        command = former.step(GroupDue(tuple(self.life.waiting), file_ready=self.rng.random() < 0.2))
        while not isinstance(command, WriteGroup):
            if self.rng.random() < 0.15:
                raise NoSpace
            if isinstance(command, RemoveTail):
                file = self.files[former.number]
                assert all(group.durable for group in file.groups if group.end.offset <= command.size_bytes)
                file.groups = [group for group in file.groups if group.offset < command.size_bytes]
                command = former.step(TailRemoved())
            else:
                assert isinstance(command, StartFile)
                assert command.after == max(self.files, default=0) or self.mark is not None
                command = former.step(FileStarted(self.new_file()))
        return command

    def new_file(self) -> NextFile:
        number = self.next_number
        self.next_number += self.rng.choice([1, 1, 2])
        written = self.rng.random() < 0.5
        self.files[number] = ModelFile(written=written)
        return NextFile(number, f"/journal/{number}", FILE_BYTES if written else ALIGNMENT, FILE_BYTES if written else 0, written)

    def check_write(self, command: WriteGroup, items: list[Item]) -> None:
        size = sum(item.size_bytes for item in items)
        assert items, "a group has an item"
        assert command.end.offset == command.offset + padded(GROUP_HEADER_BYTES + size)
        assert command.end.sequence == self.life.commit.synced.sequence + 1, "a group is written after the sync of the one before"
        assert len({item.kind for item in items} - {None}) <= 1
        assert len([item for item in items if item.kind is not None]) == 1 or size <= GROUP_BYTES
        assert command.early == any(item.early for item in items)
        assert command.records == sum(item.count for item in items)
        file = self.files[command.end.file_number]
        assert command.offset == (file.groups[-1].end.offset if file.groups else HEADER_BYTES), "a group follows the one before"
        assert command.end.offset <= FILE_BYTES or command.offset == HEADER_BYTES
        assert command.end_block == (file.written and command.end.offset < FILE_BYTES)

    def write(self, command: WriteGroup, items: list[Item]) -> Written:
        size = sum(item.size_bytes for item in items)
        written = Written(command.offset, command.end, size, [item.number for item in items], durable=False)
        if self.rng.random() < 0.15:
            if self.rng.random() < 0.5:
                # The whole group reached the disk, although the write failed.
                self.files[command.end.file_number].groups.append(written)
            raise NoSpace
        self.files[command.end.file_number].groups.append(written)
        return written

    def refuse(self, acknowledged: bool) -> None:
        life, waiting = self.life, self.life.waiting
        life.waiting = []
        no_space = self.rng.random() < 0.9
        answer = life.commit.step(WriteFailed(len(waiting), sum(item.size_bytes for item in waiting), no_space, acknowledged))
        assert (life.commit.unsynced, life.commit.waiting_bytes) == (0, 0)
        if isinstance(answer, ResumeBehind):
            assert not acknowledged, "what was acknowledged is never refused"
            assert no_space
            assert answer.synced == life.commit.synced
            life.former.step(GroupRefused(answer.synced))
        else:
            assert isinstance(answer, FailJournal)
            assert acknowledged or not no_space or life.commit.failed
            self.end_life()

    def flush(self) -> None:
        synced = self.life.commit.synced
        self.mark = JournalMark(synced.file_number, synced.offset, synced.sequence, 1)
        if self.rng.random() < 0.7:
            self.files = {number: file for number, file in self.files.items() if number >= synced.file_number}

    def run(self) -> None:
        for _ in range(STEPS):
            step = self.rng.choices([self.submit, self.group, self.flush, self.end_life], [10, 8, 1, 1])[0]
            step()
        self.end_life()


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 1 << 32))
def test_nothing_synced_is_lost_in_any_order_of_events(seed: int) -> None:
    World(seed).run()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([GroupType.ENTRIES, GroupType.STATES, None]), st.integers(1, 3 * GROUP_BYTES)), min_size=1))
def test_every_item_is_in_one_group_in_its_order(shapes: list[tuple[GroupType | None, int]]) -> None:
    items = [Item(number, kind, size if kind is not None else 0, 1, False) for number, (kind, size) in enumerate(shapes)]
    former = GroupFormer(file_bytes=FILE_BYTES, group_bytes=GROUP_BYTES, preallocate_bytes=PREALLOCATE_BYTES, number=0, sequence=0)
    number = 0
    waiting = items
    while waiting:
        command = former.step(GroupDue(waiting, file_ready=False))
        if isinstance(command, StartFile):
            number = command.after + 1
            command = former.step(FileStarted(NextFile(number, "", ALIGNMENT, 0, False)))
        assert isinstance(command, WriteGroup)
        assert command.items > 0
        waiting = waiting[command.items :]


def test_a_group_longer_than_a_file_begins_a_fresh_file_and_is_its_only_one() -> None:
    former = GroupFormer(file_bytes=FILE_BYTES, group_bytes=GROUP_BYTES, preallocate_bytes=PREALLOCATE_BYTES, number=0, sequence=0)
    assert former.step(FileStarted(NextFile(1, "", ALIGNMENT, 0, False))) is None
    long, short = Item(0, GroupType.ENTRIES, 2 * FILE_BYTES, 1, False), Item(1, GroupType.ENTRIES, 10, 1, False)
    first = former.step(GroupDue((long,), file_ready=False))
    assert isinstance(first, WriteGroup), "the file is not left behind empty"
    assert (first.end.file_number, first.offset, first.end.sequence) == (1, HEADER_BYTES, 1)
    assert former.step(GroupDue((short,), file_ready=False)) == StartFile(1)
    second = former.step(FileStarted(NextFile(2, "", ALIGNMENT, 0, False)))
    assert isinstance(second, WriteGroup)
    assert (second.end.file_number, second.offset) == (2, HEADER_BYTES)
    assert former.step(GroupDue((long,), file_ready=False)) == StartFile(2), "behind another group it would cross the end of the file"


def test_a_closing_journal_fails_on_a_full_disk() -> None:
    commit = GroupCommit(GroupPosition(1, HEADER_BYTES, 0), resumes=True)
    commit.submitted(10)
    commit.step(JournalCloseRequested())
    assert isinstance(commit.step(WriteFailed(1, 10, no_space=True, acknowledged=False)), FailJournal)
    assert commit.failed


def test_a_spare_is_made_once_a_file_is_filled_to_a_sixteenth() -> None:
    size = 64 * ALIGNMENT
    before, behind = GroupPosition(1, 3 * ALIGNMENT, 1), GroupPosition(1, 4 * ALIGNMENT, 2)
    assert not wants_file(before, size, ready=False, spares=0, may_prepare=True)
    assert wants_file(behind, size, ready=False, spares=0, may_prepare=True)
    assert not wants_file(behind, size, ready=False, spares=0, may_prepare=False)
    assert wants_file(before, size, ready=False, spares=1, may_prepare=False)
    assert not wants_file(behind, size, ready=True, spares=1, may_prepare=True)
