"""Orders of reads, appends and acknowledgements: which reads a leader answers, and when."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from triplicate.replica.core.read_confirmation import ReadConfirmation, SentAppend

LEASE_S = 10.0


class Reads(RuleBasedStateMachine):
    """Reads are numbered in the order of their arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: ReadConfirmation[int] = ReadConfirmation(LEASE_S)
        self.now = 0.0
        self.arrived = 0
        self.arrived_at: dict[int, float] = {}
        self.in_flight: list[SentAppend[int]] = []
        self.waiting: set[int] = set()
        self.confirmed: set[int] = set()
        self.failed: set[int] = set()
        self.acknowledged_sendings: list[float] = []

    @rule(seconds=st.floats(0.125, 8))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_read_waits(self) -> None:
        self.arrived += 1
        self.reads.wait(self.arrived)
        self.arrived_at[self.arrived] = self.now
        self.waiting.add(self.arrived)
        assert self.reads.wants_append

    @rule(noop=st.booleans())
    def an_append_is_sent(self, noop: bool) -> None:
        sent = self.reads.send_noop(self.now) if noop else self.reads.send(self.now)
        assert set(sent.reads) == self.waiting
        assert not noop or not self.reads.wants_append
        self.waiting.clear()
        self.in_flight.append(sent)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def an_append_is_acknowledged(self, data: st.DataObject) -> None:
        sent = self.in_flight.pop(data.draw(st.integers(0, len(self.in_flight) - 1)))
        for read in self.reads.acknowledge(sent):
            assert self.arrived_at[read] <= sent.sent_at
            self.confirmed.add(read)
        self.acknowledged_sendings.append(sent.sent_at)

    @precondition(lambda self: self.in_flight)
    @rule()
    def the_newest_append_is_refused(self) -> None:
        sent = self.in_flight.pop()
        self.reads.refuse(sent)
        self.waiting.update(sent.reads)

    @precondition(lambda self: self.in_flight)
    @rule()
    def an_append_fails(self) -> None:
        self.failed.update(self.in_flight.pop(0).reads)

    @rule()
    def a_read_looks_at_the_lease(self) -> None:
        holds = any(self.now < sent_at + LEASE_S for sent_at in self.acknowledged_sendings)
        assert self.reads.is_confirmed(self.now) is holds

    @rule()
    def the_leadership_ends(self) -> None:
        assert set(self.reads.close()) == self.waiting
        self.failed |= self.waiting
        self.waiting.clear()

    @invariant()
    def every_read_is_in_one_place(self) -> None:
        in_flight = {read for sent in self.in_flight for read in sent.reads}
        places = [self.waiting, in_flight, self.confirmed, self.failed]
        assert sum(map(len, places)) == self.arrived == len(set().union(*places))


TestReads = Reads.TestCase


def test_a_lease_is_renewed_after_a_third_of_it() -> None:
    reads: ReadConfirmation[int] = ReadConfirmation(9.0)
    reads.acknowledge(reads.send_noop(100.0))
    assert reads.is_confirmed(102.9)
    assert not reads.wants_append
    assert reads.is_confirmed(103.0)
    assert reads.wants_append
    reads.send(103.5)
    assert reads.wants_append  # A batch does not answer the request; the next read notices that it was sent.
    reads.send_noop(104.0)
    assert not reads.wants_append


def test_without_a_lease_no_read_is_confirmed_by_it() -> None:
    reads: ReadConfirmation[int] = ReadConfirmation(0.0)
    reads.acknowledge(reads.send_noop(100.0))
    assert not reads.is_confirmed(100.0)
