"""The decisions of a log's writer under any order of answers, failures, rolls, repairs and ends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.examples import examples
from triplicate.errors import ConnectionLost, LedgerFenced, LogFenced, NoSuchLedger, OutcomeUnknown, WindowFull
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.core.payload_encoder import EncodedEntry
from triplicate.log.core.writer_machine import (
    Abandoned,
    AbandonLedger,
    CheckRoll,
    CloseRequested,
    Event,
    LeaveBegun,
    LedgerFailed,
    LogLost,
    PendingEntry,
    Phase,
    ReportIdle,
    ResolveEntry,
    RollBegun,
    RollChecked,
    SegmentListed,
    SegmentOpened,
    SegmentRecovered,
    SendDeferred,
    SendEntry,
    StopWriter,
    SwitchSegment,
    WriterFailed,
    WriterMachine,
)

HEADER_BYTES = 64
ENTRY_BYTES = 100


def entry_of(count: int, waiter: int, *, has_readers: bool = True) -> PendingEntry[int]:
    return PendingEntry(EncodedEntry(0, count, 0, b"x" * ENTRY_BYTES, None), waiter, ENTRY_BYTES, has_readers)


@dataclass
class Ledger:
    """A ledger of the model. `entries` are waiters with the offsets that they were sent with, the header first."""

    listed: LogSegment
    entries: list[tuple[int, range]] = field(default_factory=list)
    acknowledged: int = -1

    @property
    def end_offset(self) -> int:
        return self.entries[-1][1].stop if self.entries else self.listed.first_offset


class Writing(RuleBasedStateMachine):
    """A shell without input and output: a list of ledgers stands for the log."""

    @initialize(first=st.integers(0, 5))
    def begin(self, first: int) -> None:
        self.wall_us = 10
        self.ledgers = [Ledger(LogSegment(1, first))]
        self.machine: WriterMachine[int] = WriterMachine("log", "owner", 3, self.ledgers[0].listed, self.wall_us)
        self.waiting: dict[int, int] = {}
        """Counts of the entries that are neither resolved nor failed, by waiter."""
        self.resolved: dict[int, range] = {}
        self.failed: dict[int, BaseException] = {}
        self.switch: SwitchSegment | None = None
        self.switch_step = "close"
        self.held = self.deferred = self.refuses = False
        self.holding = False
        """Whether a roll is undecided, so that entries wait."""
        self.idle = self.abandoned = 0
        self.next_waiter = 0
        self.published = 0
        self.header()

    # The shell.

    def step(self, event: Event) -> None:
        self.machine.step(event)
        self.perform()

    def perform(self) -> None:
        while self.machine.commands:
            match command := self.machine.commands.popleft():
                case SendEntry():
                    self.send(command)
                case ResolveEntry():
                    self.resolve(command.entry)
                case CheckRoll():
                    assert self.machine.can_roll
                    self.holding = self.held
                    if not self.held:
                        self.machine.step(RollChecked())
                case SwitchSegment():
                    assert self.switch is None, "a segment ends once"
                    self.switch, self.switch_step = command, "close"
                case ReportIdle():
                    assert not self.waiting
                    self.idle += 1
                case AbandonLedger():
                    assert self.switch is None, "a ledger that is being closed or recovered is not abandoned here"
                    self.abandoned += 1
                case StopWriter():
                    assert not self.failed
                    self.failed = {entry.waiter: command.error for entry in command.entries}
                    assert self.failed.keys() == self.waiting.keys(), "a failure ends everything that is pending"
                    self.waiting.clear()

    def send(self, command: SendEntry[int]) -> None:
        machine, ledger = self.machine, self.ledgers[-1]
        assert machine.phase is Phase.OPEN
        if self.deferred:
            machine.step(SendDeferred(WindowFull("the ledger is busy")))
            return
        if self.refuses:
            machine.step(LedgerFailed(ledger.listed.ledger_id, ConnectionLost("broken")))
            return
        entry = command.entry
        assert entry.first_offset == ledger.end_offset, "a ledger holds offsets in order, without gaps"
        assert command.first_index == entry.first_offset - ledger.listed.first_offset
        assert entry.waiter in self.waiting
        ledger.entries.append((entry.waiter, entry.offsets))
        self.wall_us = machine.next_wall_time_us(self.wall_us + 1)
        machine.count_sent(ENTRY_BYTES, self.wall_us)

    def resolve(self, entry: PendingEntry[int]) -> None:
        assert entry.waiter not in self.resolved, "an entry is acknowledged once"
        assert len(entry.offsets) == self.waiting.pop(entry.waiter)
        self.resolved[entry.waiter] = entry.offsets

    def header(self) -> None:
        ledger = self.ledgers[-1]
        start = ledger.listed.first_offset
        ledger.entries, ledger.acknowledged = [(-1, range(start, start))], 0
        self.switch, self.holding = None, False
        self.step(SegmentOpened(HEADER_BYTES, self.machine.next_wall_time_us(self.wall_us)))

    @property
    def works(self) -> bool:
        return self.machine.phase is not Phase.ENDED

    # Events.

    @precondition(lambda self: self.machine.can_accept)
    @rule(count=st.integers(0, 3), has_readers=st.booleans())
    def enqueue(self, count: int, has_readers: bool) -> None:
        self.next_waiter += 1
        self.waiting[self.next_waiter] = count
        self.machine.enqueue(entry_of(count, self.next_waiter, has_readers=has_readers))
        self.perform()

    @precondition(lambda self: self.ledgers[-1].acknowledged < len(self.ledgers[-1].entries) - 1)
    @rule()
    def acknowledge(self) -> None:
        ledger = self.ledgers[-1]
        ledger.acknowledged += 1
        self.machine.acknowledge(ledger.listed.ledger_id, ledger.acknowledged)
        self.perform()

    @precondition(lambda self: len(self.ledgers) > 1 or not self.works)
    @rule(entry_id=st.integers(0, 5), fails=st.booleans())
    def answer_late(self, entry_id: int, fails: bool) -> None:
        ledger_id = self.ledgers[-2 if len(self.ledgers) > 1 else -1].listed.ledger_id
        before = dict(self.resolved)
        if fails:
            self.machine.step(LedgerFailed(ledger_id, LedgerFenced("fenced")))
        else:
            self.machine.acknowledge(ledger_id, entry_id)
        self.perform()
        assert self.resolved == before, "a ledger that was given up acknowledges nothing"

    @rule(held=st.booleans(), deferred=st.booleans())
    def change_mood(self, held: bool, deferred: bool) -> None:
        self.held = held
        # The ledger's window is full only while entries are in flight.
        self.deferred = deferred and self.ledgers[-1].acknowledged < len(self.ledgers[-1].entries) - 1
        self.machine.roll_check_bytes = 300 if held else 500

    @precondition(lambda self: self.works and not self.held)
    @rule()
    def let_go_on(self) -> None:
        self.holding = False
        self.step(RollChecked())

    @precondition(lambda self: self.machine.can_roll)
    @rule()
    def roll(self) -> None:
        self.step(RollBegun())

    @rule(late=st.booleans())
    def break_ledger(self, late: bool) -> None:
        self.refuses = late
        if not late:
            self.step(LedgerFailed(self.ledgers[-1].listed.ledger_id, ConnectionLost("broken")))

    @precondition(lambda self: self.switch is not None and self.switch_step == "close" and self.works)
    @rule(data=st.data())
    def close_segment(self, data: st.DataObject) -> None:
        assert self.switch is not None
        ledger = self.ledgers[-1]
        if self.switch.cause is None and data.draw(st.booleans()):
            closed = self.machine.closed_segment(len(ledger.entries) - 1)
            assert closed.size_bytes == HEADER_BYTES + ENTRY_BYTES * (len(ledger.entries) - 1)
        else:
            # Recovery keeps the acknowledged entries, and any prefix of the rest.
            del ledger.entries[data.draw(st.integers(ledger.acknowledged + 1, len(ledger.entries))) :]
            records = ledger.end_offset - ledger.listed.first_offset
            closed = replace(ledger.listed, records=records, last_entry=len(ledger.entries) - 1, state=SegmentState.CLOSED)
            self.step(SegmentRecovered(closed))
        assert closed.end_offset == ledger.end_offset
        ledger.acknowledged = len(ledger.entries) - 1
        self.switch_step = "list"

    @precondition(lambda self: self.switch is not None and self.switch_step == "list" and self.works)
    @rule(published=st.integers(0, 4), breaks=st.booleans())
    def open_next(self, published: int, breaks: bool) -> None:
        before = self.ledgers[-1]
        self.ledgers.append(Ledger(LogSegment(before.listed.ledger_id + 1, before.end_offset + published)))
        self.published += published
        self.refuses = False
        self.step(SegmentListed(self.ledgers[-1].listed))
        if breaks:  # The header is not acknowledged: the same segment is recovered before another one follows.
            self.switch, self.switch_step = SwitchSegment(ConnectionLost("broken")), "close"
        else:
            self.header()

    @precondition(lambda self: self.works)
    @rule(way=st.sampled_from(["fenced", "deleted", "lost", "failed", "abandoned"]), chance=st.integers(0, 9))
    def end(self, way: str, chance: int) -> None:
        if chance:
            return  # Most runs continue.
        ledger_id, phase = self.ledgers[-1].listed.ledger_id, self.machine.phase
        had = dict(self.waiting)
        error = {"fenced": LedgerFenced("fenced"), "deleted": NoSuchLedger("deleted")}.get(way)
        if error is not None:
            self.step(LedgerFailed(ledger_id, error))
            if phase not in (Phase.OPEN, Phase.DRAINING):
                assert self.works, "the ledger was given up before"
                return
        elif way == "abandoned":
            self.step(Abandoned(has_records=False))
        else:
            self.step(LogLost(LedgerFenced("fenced")) if way == "lost" else WriterFailed(OSError("full")))
        assert self.machine.phase is Phase.ENDED
        assert self.failed.keys() == had.keys()
        assert not self.waiting
        kind = {"abandoned": OutcomeUnknown if had else type(None), "failed": OSError}.get(way, LogFenced)
        assert isinstance(self.machine.failure, kind)
        assert self.abandoned == (phase in (Phase.OPEN, Phase.DRAINING))

    @precondition(lambda self: self.works)
    @rule(chance=st.integers(0, 5))
    def close(self, chance: int) -> None:
        if not chance and self.machine.phase is not Phase.LEAVING:
            self.step(CloseRequested())
            if self.machine.is_drained and self.machine.is_closing:
                self.step(LeaveBegun())
                self.machine.closed_segment(len(self.ledgers[-1].entries) - 1)

    # Invariants after each step.

    @invariant()
    def acknowledged_offsets_have_one_order(self) -> None:
        ranges = [self.resolved[waiter] for waiter in sorted(self.resolved)]
        for left, right in pairwise(ranges):
            assert left.stop <= right.start, "offsets are acknowledged in the order of the appends"

    @invariant()
    def what_is_acknowledged_is_in_a_ledger_once(self) -> None:
        stored = [entry for ledger in self.ledgers for entry in ledger.entries if entry[0] != -1]
        assert len({waiter for waiter, _ in stored}) == len(stored), "nothing is stored twice"
        places = dict(stored)
        assert all(places[waiter] == offsets for waiter, offsets in self.resolved.items())

    @invariant()
    def nothing_is_forgotten(self) -> None:
        machine = self.machine
        assert not self.waiting.keys() & self.resolved.keys()
        assert len(self.waiting) + len(self.resolved) + len(self.failed) == self.next_waiter
        assert machine.is_idle == (not self.waiting)
        if self.works:
            assert machine.next_offset == machine.acknowledged_offset + sum(self.waiting.values())
            assert machine.published_between == self.published

    @invariant()
    def an_open_segment_does_not_stand_still(self) -> None:
        machine, ledger = self.machine, self.ledgers[-1]
        in_flight = len(ledger.entries) - 1 - ledger.acknowledged
        if machine.phase is Phase.OPEN and self.waiting and not in_flight:
            assert self.holding, "what waits in an open segment is sent"
        if machine.phase is Phase.DRAINING:
            assert in_flight, "a roll begins as soon as nothing is in flight"
        if machine.phase is Phase.SWITCHING:
            assert self.switch is not None

    @invariant()
    def readers_reach_the_last_record(self) -> None:
        machine = self.machine
        segment = machine.segment
        assert segment.readable <= segment.acknowledged
        assert segment.worth_reading <= segment.acknowledged
        if machine.has_unreadable:
            assert not self.waiting


Writing.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
TestWriting = Writing.TestCase


def machine_with(counts: list[int], *, acknowledged: int = 0) -> tuple[WriterMachine[int], list[PendingEntry[int]]]:
    """A machine in ledger 7 whose entries are all sent, and of which the first are acknowledged."""
    machine: WriterMachine[int] = WriterMachine("log", "owner", 1, LogSegment(7, 0), 0)
    machine.step(SegmentOpened(HEADER_BYTES, 1))
    entries = [entry_of(count, number) for number, count in enumerate(counts)]
    for entry in entries:
        machine.enqueue(entry)
        machine.count_sent(ENTRY_BYTES, 1)
    for entry_id in range(1, acknowledged + 1):
        machine.acknowledge(7, entry_id)
    return machine, entries


def commands_of(machine: WriterMachine[int]) -> list[object]:
    commands = list[object](machine.commands)
    machine.commands.clear()
    return commands


@given(counts=st.lists(st.integers(1, 3), min_size=2, max_size=6), data=st.data())
def test_an_answer_out_of_order_is_an_error_of_the_ledger(counts: list[int], data: st.DataObject) -> None:
    machine, _ = machine_with(counts)
    entry_id = data.draw(st.integers(2, len(counts)))
    with pytest.raises(AssertionError, match="in order"):
        machine.acknowledge(7, entry_id)


def test_a_ledger_that_fails_during_a_roll_is_recovered_and_other_entries_are_resent() -> None:
    machine, entries = machine_with([2, 3, 1], acknowledged=1)
    machine.step(RollBegun())
    late = entry_of(4, 9)
    machine.enqueue(late)
    commands_of(machine)
    machine.step(LedgerFailed(7, ConnectionLost("broken")))
    assert [type(command) for command in commands_of(machine)] == [SwitchSegment]
    machine.acknowledge(7, 2)
    assert commands_of(machine) == []
    machine.step(SegmentRecovered(LogSegment(7, 0, records=5, last_entry=2, state=SegmentState.CLOSED)))
    assert commands_of(machine) == [ResolveEntry(entries[1])]
    machine.step(SegmentListed(LogSegment(8, 15)))
    machine.step(SegmentOpened(HEADER_BYTES, 2))
    assert commands_of(machine) == [SendEntry(entries[2], 0)]
    assert (entries[2].offsets, late.offsets) == (range(15, 16), range(16, 20))
    assert (machine.rolls, machine.repairs, machine.published_between) == (1, 1, 10)


def test_a_roll_waits_for_entries_in_flight_and_sends_nothing() -> None:
    machine, entries = machine_with([1, 1])
    commands_of(machine)
    machine.step(RollBegun())
    machine.enqueue(entry_of(1, 9))
    machine.acknowledge(7, 1)
    assert commands_of(machine) == [ResolveEntry(entries[0])]
    machine.acknowledge(7, 2)
    assert commands_of(machine) == [ResolveEntry(entries[1]), SwitchSegment(None)]


def test_recovery_of_more_entries_than_were_sent_is_an_error() -> None:
    machine, _ = machine_with([2])
    machine.step(LedgerFailed(7, ConnectionLost("broken")))
    with pytest.raises(AssertionError, match="only what was sent"):
        machine.step(SegmentRecovered(LogSegment(7, 0, records=3, last_entry=2, state=SegmentState.CLOSED)))


def test_a_ledger_without_room_for_one_entry_ends_the_writer() -> None:
    machine, _ = machine_with([])
    commands_of(machine)
    machine.enqueue(entry_of(1, 1))
    commands_of(machine)
    machine.step(SendDeferred(WindowFull("too small")))
    assert [type(command) for command in commands_of(machine)] == [AbandonLedger, StopWriter]


def test_an_entry_sent_together_with_a_record_does_not_make_it_readable() -> None:
    machine, _ = machine_with([1])
    noop = entry_of(0, 9, has_readers=False)
    machine.enqueue(noop)
    machine.count_sent(ENTRY_BYTES, 1)
    machine.acknowledge(7, 1)
    assert not machine.has_unreadable
    machine.acknowledge(7, 2)
    assert machine.has_unreadable
    machine.enqueue(entry_of(0, 10, has_readers=False))
    machine.count_sent(ENTRY_BYTES, 1)
    machine.acknowledge(7, 3)
    assert not machine.has_unreadable
