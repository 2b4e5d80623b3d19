"""The machine of the ensemble change under unusual orders of events: failures, probes, listings, lost answers and conflicts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import (
    BookieError,
    BookieReadOnly,
    LedgerClosed,
    LedgerFenced,
    NotEnoughBookies,
    OutcomeUnknown,
    RequestTimeout,
)
from triplicate.ledger import AdvWriteTracker, EnsembleSegment, LedgerMetadata, LedgerState, WriteTracker, is_endangered, write_set
from triplicate.ledger import ensemble_change as machine

QUORUMS = [(1, 1, 1), (3, 3, 2), (3, 2, 2), (3, 2, 1), (4, 3, 3), (5, 3, 2)]
ERRORS = (BookieError, RequestTimeout, BookieReadOnly)
SPARES = 2
ADD_TIMEOUT_S = 5.0
METADATA_TIMEOUT_S = 20.0


class Doubling:
    """A backoff without randomness."""

    def __init__(self, first_s: float, maximum_s: float) -> None:
        self.first_s = self.step_s = first_s
        self.maximum_s = maximum_s

    def next_s(self) -> float:
        step_s, self.step_s = self.step_s, min(2 * self.step_s, self.maximum_s)
        return step_s

    def reset(self) -> None:
        self.step_s = self.first_s


class World:
    """A writer's tracker, the bookies and the metadata around one machine; it checks each command of the machine."""

    def __init__(self, quorums: tuple[int, int, int], *, delayed: bool, adv: bool, seed: int) -> None:
        size, self.write_quorum, self.ack_quorum = quorums
        self.everybody = [f"b{i}" for i in range(size + SPARES)]
        self.metadata = LedgerMetadata(size, self.write_quorum, self.ack_quorum, (EnsembleSegment(0, tuple(self.everybody[:size])),))
        kind = AdvWriteTracker if adv else WriteTracker
        self.tracker: WriteTracker | AdvWriteTracker = kind(self.everybody[:size], self.write_quorum, self.ack_quorum)
        limits = machine.ChangeSettings(delayed, ADD_TIMEOUT_S, METADATA_TIMEOUT_S, 0.1, 2.0)
        self.machine = machine.EnsembleChange(
            7, self.tracker, self.metadata.last_segment, limits, Random(seed), Doubling(0.1, machine.SEARCH_PAUSE_MAXIMUM_S), Doubling
        )
        self.now = 100.0
        self.writable = set(self.everybody)
        self.stored: dict[str, set[int]] = {bookie_id: set() for bookie_id in self.everybody}
        """Acknowledged entries that the writer may count."""
        self.answered: set[str] = set()
        """Bookies that answered a probe after their last failure."""
        self.probes: list[str] = []
        self.is_listing = False
        self.is_frozen = False
        """Whether an operator has frozen ensembles."""
        self.was_frozen = False
        """Whether they were frozen in the last listing."""
        self.proposed: EnsembleSegment | None = None
        """The segment being written."""
        self.lost_since: float | None = None
        self.is_foreign = False
        """Whether another client took the ledger over."""

    # Events of the world.

    def push(self) -> None:
        if isinstance(self.tracker, WriteTracker):
            self.tracker.push()
        else:
            self.tracker.push(self.tracker.last_add_pushed + 1)

    def acknowledge(self, bookie_id: str, entry_ids: list[int]) -> None:
        position = self.tracker.position_of(bookie_id)
        if position is not None:
            self.stored[bookie_id].update(e for e in entry_ids if e <= self.tracker.last_add_pushed and self.tracker.holds(position, e))
        self.tracker.acknowledge(bookie_id, entry_ids)
        self.advance()

    def advance(self) -> None:
        before, is_changing = self.tracker.last_add_confirmed, self.tracker.changing
        confirmed = self.tracker.advance()
        assert confirmed >= before
        assert confirmed == before or not is_changing, "nothing is confirmed during a change"
        if self.is_foreign:
            return
        for entry_id in range(before + 1, confirmed + 1):
            ensemble = self.metadata.ensemble_of(entry_id)
            positions = write_set(entry_id, len(ensemble), self.write_quorum)
            copies = sum(entry_id in self.stored[ensemble[position]] for position in positions)
            assert copies >= self.ack_quorum, "an entry is confirmed only by bookies that the metadata names"

    def fail(self, bookie_id: str, error: type[BookieError]) -> None:
        if self.tracker.position_of(bookie_id) is None:
            return
        self.tracker.suspend(bookie_id)
        self.answered.discard(bookie_id)
        if error is BookieReadOnly:
            self.writable.discard(bookie_id)
        self.step(machine.BookieFailed(bookie_id, error("it failed")))

    def probe_ends(self, bookie_id: str, error: type[BookieError] | None) -> None:
        self.probes.remove(bookie_id)
        if error is None:
            self.answered.add(bookie_id)
            self.step(machine.ProbeAnswered(bookie_id))
        else:
            self.answered.discard(bookie_id)
            self.step(machine.ProbeFailed(bookie_id, error("no answer")))

    def listing_ends(self, *, is_reachable: bool) -> None:
        self.is_listing = False
        listed: machine.Event = machine.ListingFailed("away")
        if is_reachable:
            listed = machine.BookiesListed(tuple(sorted(self.writable)), frozen="for a test" if self.is_frozen else "")
        self.was_frozen = is_reachable and self.is_frozen
        self.step(listed)

    def write_ends(self, outcome: str) -> None:
        """One attempt at the compare-and-set; after a conflict, or a lost answer, the metadata is read again."""
        segment = self.proposed
        assert segment is not None
        written = None if self.is_foreign else self.metadata.with_ensemble(segment.first_entry_id, segment.ensemble)
        if outcome == "written" and written is not None:
            self.metadata, self.proposed = written, None
            self.step(machine.EnsembleWritten())
            return
        if outcome == "applied" and written is not None:
            self.metadata = written
        if outcome in ("closed", "recovering", "foreign", "unrelated"):
            self.change_by_others(outcome)
        self.step(machine.MetadataFound(self.metadata))
        if self.machine.is_written or self.machine.failure is not None:
            self.proposed = None
        self.check_verdict()

    def change_by_others(self, outcome: str) -> None:
        found = self.metadata
        if outcome == "unrelated":
            if not found.is_closed:
                self.metadata = replace(found, custom={**found.custom, "other": b"x"})
        elif not self.is_foreign:
            self.is_foreign = True
            if outcome == "closed":
                self.metadata = found.closed(self.tracker.last_add_confirmed, 0)
            elif outcome == "recovering":
                self.metadata = found.recovering()
            else:
                self.metadata = found.with_ensemble(found.last_segment.first_entry_id + 100, found.last_segment.ensemble)

    def check_verdict(self) -> None:
        failure = self.machine.failure
        if self.metadata.is_closed:
            assert isinstance(failure, LedgerClosed)
        elif self.metadata.state is LedgerState.IN_RECOVERY:
            assert isinstance(failure, LedgerFenced)
        elif self.is_foreign:
            assert isinstance(failure, OutcomeUnknown)
        else:
            assert failure is None

    def step(self, event: machine.Event) -> None:
        self.machine.step(event, self.now)
        self.look()

    def look(self) -> None:
        if not self.tracker.is_endangered:
            self.lost_since = None
        elif self.lost_since is None:
            self.lost_since = self.now

    # Commands of the machine.

    def decide(self) -> int:
        """Execute the pending commands; return their number."""
        count = 0
        had_failed = self.machine.failure is not None
        while commands := self.machine.decide(self.now):
            assert count < 100, "the machine comes to rest"
            for command in commands:
                count += 1
                self.execute(command)
            self.look()
        failure = self.machine.failure
        if failure is not None and not had_failed:
            assert self.lost_since is not None, "a writer that finds its ack quorums goes on"
            assert isinstance(failure, NotEnoughBookies | OutcomeUnknown)
        return count

    def execute(self, command: machine.Command) -> None:
        tracker = self.tracker
        match command:
            case machine.ListBookies():
                assert (self.is_listing, self.proposed) == (False, None), "one thing at a time"
                self.is_listing = True
            case machine.WriteEnsemble():
                self.check_proposal(command.segment)
                self.proposed = command.segment
            case machine.UseEnsemble():
                assert command.segment.ensemble == tracker.ensemble == self.metadata.last_segment.ensemble
                assert command.segment.first_entry_id == tracker.last_add_confirmed + 1 == self.metadata.last_segment.first_entry_id
                for position in command.positions:
                    self.begin_again(position)
            case machine.ResumeBookie():
                assert command.bookie_id in self.answered, "only a bookie that answered is sent entries"
                assert not tracker.changing
                assert tracker.ensemble[command.position] == command.bookie_id
                self.begin_again(command.position)
            case machine.ProbeBookie():
                assert command.bookie_id not in self.probes
                assert command.bookie_id in tracker.ensemble
                self.probes.append(command.bookie_id)
            case machine.ConfirmEntries():
                assert not tracker.changing
                self.advance()

    def begin_again(self, position: int) -> None:
        """Drop the bookie's acknowledgements beyond the last-add-confirmed."""
        tracker = self.tracker
        stored = self.stored[tracker.ensemble[position]]
        stored -= {e for e in stored if e > tracker.last_add_confirmed}
        assert tracker.position_of(tracker.ensemble[position]) == position

    def check_proposal(self, segment: EnsembleSegment) -> None:
        tracker = self.tracker
        assert (self.is_listing, self.proposed) == (False, None), "one thing at a time"
        assert tracker.changing, "from the proposal on, nothing is confirmed"
        assert not self.was_frozen, "no bookie is replaced while ensembles are frozen"
        assert segment.first_entry_id == tracker.last_add_confirmed + 1
        assert len(set(segment.ensemble)) == len(tracker.ensemble)
        changed = [p for p, (old, new) in enumerate(zip(tracker.ensemble, segment.ensemble, strict=True)) if old != new]
        assert changed
        assert set(changed) <= set(tracker.suspended), "only suspended bookies are replaced"


def some_step(world: World, data: st.DataObject) -> None:
    kinds = ["push", "push", "acknowledge", "acknowledge", "fail", "decide", "decide", "time", "come", "go", "freeze"]
    kinds += ["probe"] * (2 * bool(world.probes)) + ["listing"] * (3 * world.is_listing) + ["write"] * (3 * (world.proposed is not None))
    kind = data.draw(st.sampled_from(kinds))
    if kind == "push":
        world.push()
    elif kind == "acknowledge":
        pushed = range(world.tracker.last_add_confirmed + 1, world.tracker.last_add_pushed + 1)
        for bookie_id in data.draw(st.lists(st.sampled_from(world.everybody), max_size=4)):
            world.acknowledge(bookie_id, list(pushed[: data.draw(st.integers(0, 4))]))
    elif kind == "fail":
        world.fail(data.draw(st.sampled_from(world.everybody)), data.draw(st.sampled_from(ERRORS)))
    elif kind == "decide":
        world.decide()
    elif kind == "time":
        world.now += data.draw(st.sampled_from([0.05, 0.5, 3.0, 15.0]))
    elif kind == "freeze":
        # Mostly not, so that most worlds change their ensembles.
        world.is_frozen = data.draw(st.sampled_from([False, False, False, True]))
    elif kind in ("come", "go"):
        bookie_id = data.draw(st.sampled_from(world.everybody))
        (world.writable.add if kind == "come" else world.writable.discard)(bookie_id)
        world.step(machine.BookiesChanged())
    elif kind == "probe":
        world.probe_ends(data.draw(st.sampled_from(world.probes)), data.draw(st.sampled_from([None, None, *ERRORS])))
    elif kind == "listing":
        world.listing_ends(is_reachable=data.draw(st.sampled_from([True, True, False])))
    else:
        outcomes = ["written"] * 4 + ["applied", "lost", "unrelated", "closed", "recovering", "foreign"]
        world.write_ends(data.draw(st.sampled_from(outcomes)))


def made(data: st.DataObject) -> World:
    delayed, adv = data.draw(st.booleans()), data.draw(st.booleans())
    return World(data.draw(st.sampled_from(QUORUMS)), delayed=delayed, adv=adv, seed=data.draw(st.integers(0, 99)))


@settings(max_examples=examples(500), deadline=None)
@given(st.data(), st.integers(1, 60))
def test_entries_are_confirmed_only_by_bookies_that_the_metadata_names(data: st.DataObject, steps: int) -> None:
    """The world checks each command and each confirmation."""
    world = made(data)
    for _ in range(steps):
        some_step(world, data)
        assert set(world.machine.missing) <= set(world.everybody)


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.integers(0, 6))
def test_a_writer_without_a_spare_bookie_continues_while_it_has_ack_quorums(data: st.DataObject, entries: int) -> None:
    world = made(data)
    world.writable = set(world.tracker.ensemble)
    for bookie_id in data.draw(st.lists(st.sampled_from(world.tracker.ensemble), min_size=1, unique=True)):
        suspended = {*world.tracker.suspended, world.tracker.ensemble.index(bookie_id)}
        if not is_endangered(suspended, len(world.tracker.ensemble), world.write_quorum, world.ack_quorum):
            world.fail(bookie_id, data.draw(st.sampled_from((BookieError, RequestTimeout))))
    for _ in range(entries):
        world.push()
    world.decide()
    if world.is_listing:
        world.listing_ends(is_reachable=data.draw(st.booleans()))
    world.decide()
    assert world.machine.failure is None
    assert not world.tracker.changing
    assert set(world.machine.missing) == {world.tracker.ensemble[position] for position in world.tracker.suspended}
    for bookie_id in world.tracker.ensemble:
        world.acknowledge(bookie_id, list(range(entries)))
    assert world.tracker.last_add_confirmed == entries - 1


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.integers(1, 40))
def test_a_writer_has_a_complete_ensemble_after_all_bookies_return(data: st.DataObject, steps: int) -> None:
    world = made(data)
    for _ in range(steps):
        some_step(world, data)
    world.writable = set(world.everybody)
    world.is_frozen = False
    world.step(machine.BookiesChanged())
    for _ in range(200):
        world.decide()
        if world.is_listing:
            world.listing_ends(is_reachable=True)
        elif world.proposed is not None:
            world.write_ends("written")
        elif world.probes:
            world.probe_ends(world.probes[0], None)
        elif world.machine.failure is not None or not world.tracker.suspended:
            break
        else:
            assert world.machine.wake_at < float("inf"), "what no event wakes, time does"
            world.now = max(world.now, world.machine.wake_at)
    assert world.machine.failure is not None or (not world.tracker.suspended and not world.tracker.changing)


@settings(max_examples=examples(80), deadline=None)
@given(st.data(), st.integers(1, 30))
def test_an_ended_writer_decides_nothing(data: st.DataObject, steps: int) -> None:
    world = made(data)
    for _ in range(steps):
        some_step(world, data)
    world.step(machine.WriterEnded())
    assert world.machine.missing == ()
    for bookie_id in world.tracker.ensemble:
        world.fail(bookie_id, BookieError)
    for event in (machine.BookiesListed(tuple(world.everybody)), machine.EnsembleWritten(), machine.MetadataFound(world.metadata)):
        world.machine.step(event, world.now)
    assert world.machine.decide(world.now + 100.0) == []


def test_a_frozen_writer_that_loses_an_ack_quorum_fails_after_the_add_timeout_and_names_the_freeze() -> None:
    world = World((3, 3, 2), delayed=False, adv=False, seed=1)
    world.is_frozen = True
    for bookie_id in ("b0", "b1"):
        world.fail(bookie_id, RequestTimeout)
    began = world.now
    while world.machine.failure is None:
        world.decide()
        if world.is_listing:
            world.listing_ends(is_reachable=True)
        elif world.probes:
            world.probe_ends(world.probes[0], RequestTimeout)
        elif world.machine.failure is None:
            world.now = max(world.now + 0.01, min(world.machine.wake_at, world.now + 1.0))
    assert isinstance(world.machine.failure, NotEnoughBookies)
    assert "changes of ensembles are frozen for a test" in str(world.machine.failure)
    assert ADD_TIMEOUT_S <= world.now - began < ADD_TIMEOUT_S + 2.0


def test_a_writer_replaces_a_bookie_within_the_longest_pause_after_a_freeze() -> None:
    world = World((3, 3, 2), delayed=False, adv=False, seed=1)
    world.is_frozen = True
    world.fail("b0", RequestTimeout)
    freed = world.now + 100.0
    while world.proposed is None:
        world.is_frozen = world.now < freed
        world.decide()
        if world.is_listing:
            world.listing_ends(is_reachable=True)
        elif world.probes:
            world.probe_ends(world.probes[0], RequestTimeout)
        elif world.proposed is None:
            world.now = max(world.now, world.machine.wake_at)
    assert freed <= world.now <= freed + machine.SEARCH_PAUSE_MAXIMUM_S + 1.0
