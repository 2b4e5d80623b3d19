"""Writer and recoverers over a model of bookies, with messages in random order: no acknowledged entry is lost.

One writer has entries in flight while up to two recoverers work. Fewer bookies than an ack quorum fail for good, others only seem to fail,
and requests of recoverers get lost. The first recoverer that closes wins. Checked: the end is not before any entry confirmed to the
writer; all recoverers see the same end; every entry up to it is on an ack quorum of its ensemble; the length is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.ledger import EnsembleSegment, LedgerMetadata, LedgerState, WriteTracker, write_set
from triplicate.ledger import recovery as machine

QUORUMS = [(3, 3, 2), (3, 2, 2), (4, 3, 2), (5, 3, 2), (5, 3, 3), (2, 2, 1), (4, 2, 2)]


@dataclass
class Stored:
    last_add_confirmed: int
    length: int
    payload: bytes


@dataclass
class ModelBookie:
    entries: dict[int, Stored] = field(default_factory=dict)
    fenced: bool = False
    dead: bool = False


class World:
    def __init__(self, rng: random.Random, quorums: tuple[int, int, int]) -> None:
        self.rng = rng
        self.size, self.write_quorum, self.ack_quorum = quorums
        # Enough spare bookies for every write set to reach its ack quorum if all failures hit one write set.
        needed = max(1, 2 * self.ack_quorum - 1 - self.write_quorum)
        self.names = [f"b{i}" for i in range(self.size + rng.randint(needed, self.ack_quorum))]
        self.bookies = {name: ModelBookie() for name in self.names}
        self.mail: list[Callable[[], None]] = []
        self.metadata = LedgerMetadata(*quorums, (EnsembleSegment(0, tuple(self.names[: self.size])),))
        self.tracker = WriteTracker(self.names[: self.size], self.write_quorum, self.ack_quorum)
        self.fenced_writer = False
        self.closed: LedgerMetadata | None = None
        self.failures = 0
        self.restarts: list[None] = []

    def run(self) -> None:
        """Deliver messages in random order until none is left."""
        while self.mail:
            self.mail.pop(self.rng.randrange(len(self.mail)))()

    def payload(self, entry_id: int) -> bytes:
        return b"x" * (entry_id % 3 + 1)

    def length(self, entry_id: int) -> int:
        return sum(len(self.payload(e)) for e in range(entry_id + 1))

    # The writer.

    def append(self) -> None:
        if self.fenced_writer:
            return
        entry_id = self.tracker.push()
        stored = Stored(self.tracker.last_add_confirmed, self.length(entry_id), self.payload(entry_id))
        for position in write_set(entry_id, self.size, self.write_quorum):
            if position not in self.tracker.suspended:
                self.send(self.tracker.ensemble[position], entry_id, stored)

    def do_without(self, name: str) -> None:
        """The writer considers the bookie failed, and continues without it."""
        self.tracker.suspend(name)

    def take_in_again(self) -> None:
        """An absent bookie seems to be back: it is sent the unconfirmed entries, while earlier requests may still be in flight."""
        if self.tracker.suspended and not self.fenced_writer:
            position = self.rng.choice(self.tracker.suspended)
            self.send_pending(position, self.tracker.resume(position))

    def send_pending(self, position: int, entry_ids: list[int]) -> None:
        for entry_id in entry_ids:
            stored = Stored(self.tracker.last_add_confirmed, self.length(entry_id), self.payload(entry_id))
            self.send(self.tracker.ensemble[position], entry_id, stored)

    def send(self, name: str, entry_id: int, stored: Stored) -> None:
        def arrive() -> None:
            bookie = self.bookies[name]
            if bookie.dead:
                return
            if bookie.fenced:
                self.fenced_writer = True
            else:
                bookie.entries[entry_id] = stored
                self.mail.append(answered)

        def answered() -> None:
            self.tracker.acknowledge(name, (entry_id,))
            self.tracker.advance()

        self.mail.append(arrive)

    def change_ensemble(self, name: str) -> None:
        """The writer replaces a bookie that failed or seems to have failed, if the metadata still allow it."""
        if name not in self.tracker.ensemble or self.metadata.state != LedgerState.OPEN or self.fenced_writer:
            return
        position = self.tracker.ensemble.index(name)
        spare = [other for other in self.names if other not in self.tracker.ensemble and not self.bookies[other].dead]
        if not spare:
            return
        ensemble = list(self.tracker.ensemble)
        ensemble[position] = self.rng.choice(spare)
        self.tracker.begin_change()
        self.metadata = self.metadata.with_ensemble(self.tracker.last_add_confirmed + 1, ensemble)
        self.tracker.replace(ensemble)
        self.send_pending(position, self.tracker.pending_of(position))
        self.tracker.end_change()

    def kill(self, name: str) -> None:
        if self.failures < self.ack_quorum - 1:
            self.failures += 1
            self.bookies[name].dead = True
            self.change_ensemble(name)


class Recoverer:
    def __init__(self, world: World, losses: int = 0, *, hedges: bool = False) -> None:
        self.world = world
        self.losses = losses
        self.hedges = hedges
        self.now = 0.0
        world.metadata = world.metadata.recovering() if world.metadata.state == LedgerState.OPEN else world.metadata
        self.machine = machine.Recovery(world.metadata, world.rng.randint(1, 4), 0.0, hedge_s=0.5)
        self.result: LedgerMetadata | None = None
        self.obey()

    def obey(self) -> None:
        if self.machine.failure is not None:
            self.world.restarts.append(None)
        for command in self.machine.pop_commands():
            self.world.mail.append(lambda command=command: self.carry_out(command))  # type: ignore[misc]
        if self.hedges and self.machine.hedge_at < float("inf"):
            self.world.mail.append(self.grow_impatient)

    def grow_impatient(self) -> None:
        """The requested replicas are slow: their answers come later, or never."""
        if self.machine.hedge_at < float("inf"):
            self.now = max(self.now, self.machine.hedge_at)
            self.machine.step(machine.TimePassed(), self.now)
            self.obey()

    def tell(self, event: machine.Event) -> None:
        def arrive() -> None:
            self.machine.step(event, self.now)
            self.obey()

        self.world.mail.append(arrive)

    def is_lost(self) -> bool:
        """Whether a request is lost on its way to a living bookie."""
        lost = self.losses > 0 and self.world.rng.random() < 0.3
        self.losses -= lost
        return lost

    def carry_out(self, command: machine.Command) -> None:
        world = self.world
        match command:
            case machine.FenceAndReadLac(position, name):
                bookie = world.bookies[name]
                if bookie.dead or self.is_lost():
                    return self.tell(machine.LacFailed(position, "no answer"))
                bookie.fenced = True
                if not bookie.entries:
                    return self.tell(machine.LacAbsent(position))
                last = max(bookie.entries)
                stored = bookie.entries[last]
                return self.tell(machine.LacAnswered(position, last, stored.last_add_confirmed, stored.length))
            case machine.RecoveryRead(entry_id, name):
                bookie = world.bookies[name]
                if bookie.dead or self.is_lost():
                    return self.tell(machine.EntryFailed(entry_id, name, "no answer"))
                bookie.fenced = True
                if entry_id not in bookie.entries:
                    return self.tell(machine.EntryAbsent(entry_id, name))
                stored = bookie.entries[entry_id]
                return self.tell(machine.EntryFound(entry_id, name, stored.length, stored.payload))
            case machine.RecoveryAdd(entry_id, name, last_add_confirmed, length, payload):
                if world.bookies[name].dead:
                    return self.tell(machine.AddFailed(name, "dead"))
                world.bookies[name].entries[entry_id] = Stored(last_add_confirmed, length, payload)
                return self.tell(machine.AddsAcknowledged(name, (entry_id,)))
            case machine.ReplaceBookies(ensemble, failed):
                spare = [name for name in world.names if name not in ensemble and not world.bookies[name].dead]
                if not spare:
                    return self.tell(machine.NoReplacement("nobody is left"))
                changed = list(ensemble)
                for position, name in zip(failed, spare, strict=False):
                    changed[position] = name
                return self.tell(machine.EnsembleReplaced(tuple(changed)))
            case machine.CloseLedger(proposed):
                if world.closed is None:
                    world.closed = proposed
                self.result = world.closed
                return None


@settings(max_examples=examples(600), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(QUORUMS), st.integers(0, 12), st.integers(1, 2), st.booleans())
@example(99179, (3, 2, 2), 5, 2, False)  # Both copies of the last entry do not answer when recovery reads the ledger's length.
@example(1641332465, (5, 3, 3), 2, 1, False)  # Finds a returned bookie that counts for entries it missed; about one example in 180 does.
@example(3704595943, (2, 2, 1), 5, 1, False)  # The same where one copy confirms.
def test_recovery_keeps_every_acknowledged_entry(
    seed: int, quorums: tuple[int, int, int], entries: int, recoverers: int, hedges: bool
) -> None:
    rng = random.Random(seed)
    world = World(rng, quorums)
    started: list[Recoverer] = []
    losses = rng.randint(0, 3)
    actions: list[Callable[[], None]] = [world.append] * entries
    actions += [lambda: world.kill(rng.choice(world.names))] * rng.randint(0, world.ack_quorum - 1)
    actions += [lambda: world.change_ensemble(rng.choice(world.names))] * rng.randint(0, 5)
    actions += [lambda: world.do_without(rng.choice(world.names))] * rng.randint(0, 3)
    actions += [world.take_in_again] * rng.randint(0, 3)
    actions += [lambda: started.append(Recoverer(world, losses, hedges=hedges))] * recoverers
    rng.shuffle(actions)
    for action in actions:
        action()
        for _ in range(rng.randint(0, 6)):
            if world.mail:
                world.mail.pop(rng.randrange(len(world.mail)))()
    world.run()
    if world.closed is None:
        assert world.restarts, "a recovery neither closed nor gave up"
        started = [Recoverer(world, hedges=hedges)]
        world.run()
    closed = world.closed
    assert closed is not None
    assert all(recoverer.result is closed or recoverer.machine.failure is not None for recoverer in started)
    last = closed.last_entry_id
    assert last >= world.tracker.last_add_confirmed, "an acknowledged entry was cut off"
    if losses == 0:
        # If answers are lost, the last entry may be unreachable when its length is read; the length may be missing then.
        assert closed.length == (world.length(last) if last >= 0 else 0)
    for entry_id in range(last + 1):
        ensemble = closed.ensemble_of(entry_id)
        replicas = [ensemble[position] for position in write_set(entry_id, world.size, world.write_quorum)]
        copies = [world.bookies[name].entries[entry_id] for name in replicas if entry_id in world.bookies[name].entries]
        assert len(copies) >= world.ack_quorum
        assert {(copy.length, copy.payload) for copy in copies} == {(world.length(entry_id), world.payload(entry_id))}
