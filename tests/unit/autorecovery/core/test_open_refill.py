"""The bound up to which an open ledger is copied back to a bookie with replaced disks."""

from __future__ import annotations

import random

import pytest

from triplicate.autorecovery.core.fragments import LedgerFragment
from triplicate.autorecovery.core.open_refill import LastStored, OpenRefillBound, OpenRefills
from triplicate.ledger import EnsembleSegment, is_endangered, write_set

SEGMENT = EnsembleSegment(0, ("a", "b", "c"))


def test_three_steps_lead_to_the_end() -> None:
    bound = OpenRefillBound()
    first = {"a": LastStored(20, 18), "c": LastStored(19, 17)}
    bound.begin(SEGMENT, "b", 3, 2, first)
    bound.observe(first)
    assert bound.needed == "entries of its writer behind entry 20"
    bound.observe({"a": LastStored(22, 20), "c": LastStored(19, 17)})
    assert "behind entry 20" in bound.needed, "entry 20 was known before; its confirmation proves nothing"
    bound.observe({"a": LastStored(25, 21), "c": LastStored(30, 22)})
    assert bound.needed == "an entry of its writer that confirms entry 25"
    bound.observe({"a": LastStored(30, 24)})
    assert bound.needed == "an entry of its writer that confirms entry 25"
    bound.observe({"a": LastStored(30, 24), "c": LastStored(40, 28)})
    assert (bound.end, bound.needed) == (28, "")
    bound.observe({"a": LastStored(90, 80)})
    assert bound.end == 28, "a copy up to it is enough, however far the writer is"


@pytest.mark.parametrize(("ack_quorum", "answering", "begins"), [(2, "ac", True), (2, "a", False), (3, "a", True), (3, "", False)])
def test_a_silent_bookie_may_have_stored_what_the_old_disks_did(ack_quorum: int, answering: str, begins: bool) -> None:
    bound = OpenRefillBound()
    bound.begin(SEGMENT, "b", 3, ack_quorum, {name: LastStored(5, 4) for name in answering})
    assert bound.has_horizon is begins
    assert begins or "answers of" in bound.needed
    assert bound.silent == (() if begins else tuple(name for name in "ac" if name not in answering))


def test_a_bound_that_overlooks_a_silent_bookie_would_be_too_small() -> None:
    # Entries 0 to 40 were acknowledged by the old disks and a, which is silent; c is behind.
    bound = OpenRefillBound()
    for last in (LastStored(5, 3), LastStored(8, 6), LastStored(20, 18)):
        bound.begin(SEGMENT, "b", 3, 2, {"c": last})
        bound.observe({"c": last})
    assert bound.end is None, "18 does not cover entry 40"


def test_an_ack_quorum_of_one_gives_no_bound() -> None:
    bound = OpenRefillBound()
    bound.begin(SEGMENT, "b", 3, 1, {"a": LastStored(5, 4), "c": LastStored(5, 4)})
    bound.observe({"a": LastStored(50, 49), "c": LastStored(50, 49)})
    assert bound.end is None
    assert "ack quorum 1" in bound.needed


STRIPED = EnsembleSegment(0, ("a", "b", "c", "d", "e", "f"))


def test_a_silent_bookie_that_shares_no_write_set_is_no_obstacle() -> None:
    # The disks of b and e were replaced: no entry is on both.
    bound = OpenRefillBound()
    bound.begin(STRIPED, "b", 3, 2, {name: LastStored(20, 18) for name in "acdf"})
    assert (bound.needed, bound.silent) == ("entries of its writer behind entry 20", ())


def test_the_proof_is_an_entry_that_the_silent_bookies_cannot_have_confirmed_alone() -> None:
    # The disks of d were replaced, e and f are silent. d, e and f store entry 21; e, f and a 22; f, a and b 23.
    bound = OpenRefillBound()
    answers = {name: LastStored(20, 18) for name in "abc"}
    bound.begin(STRIPED, "d", 3, 2, answers)
    bound.observe({**answers, "a": LastStored(26, 22)})
    assert bound.needed == "entries of its writer behind entry 22", "e and f may have confirmed entry 22 before"
    bound.observe({**answers, "a": LastStored(28, 23)})
    assert bound.needed == "an entry of its writer that confirms entry 28"


def test_with_an_ack_quorum_of_one_an_entry_that_was_never_on_the_old_disks_is_a_proof() -> None:
    # a and b store entry 6, b and c 7, c and a 8.
    bound = OpenRefillBound()
    bound.begin(SEGMENT, "b", 2, 1, {"a": LastStored(3, 2), "c": LastStored(5, 4)})
    assert bound.needed == "entries of its writer behind entry 7"


def test_the_horizon_is_at_least_the_end_of_the_segment_before() -> None:
    bound = OpenRefillBound()
    bound.begin(EnsembleSegment(100, ("a", "b", "c")), "b", 3, 2, {"a": LastStored(-1, -1), "c": LastStored(-1, -1)})
    bound.observe({"a": LastStored(101, 99)})
    assert bound.needed == "entries of its writer behind entry 99"


def test_what_a_refill_knows_is_kept_for_its_ledgers() -> None:
    refills = OpenRefills("b", 2)
    fragment = LedgerFragment(0, 9, ("a", "b", "c"), 1, 3)
    for ledger_id in (4, 5):
        refills.bound_of(ledger_id).begin(SEGMENT, "b", 3, 2, {"a": LastStored(ledger_id, 0), "c": LastStored(0, 0)})
        refills.completed(ledger_id, fragment)
    refills.keep_only([5])
    assert refills.needed_by(5) == "entries of its writer behind entry 5"
    assert (refills.needed_by(4), refills.is_complete(4, fragment), refills.is_complete(5, fragment)) == ("", False, True)


class Writer:
    """A writer and its bookies, with requests and answers under way in any order between bookies, and in order on each connection."""

    def __init__(self, chance: random.Random, ensemble: int, write_quorum: int, ack_quorum: int) -> None:
        self.chance = chance
        self.names = "bacdef"[:ensemble]
        self.write_quorum, self.ack_quorum = write_quorum, ack_quorum
        self.pace = [chance.choice([0.02, 0.2, 1.0]) for _ in self.names]
        """How quickly each bookie stores and answers, against the others."""
        if chance.random() < 0.4:
            self.pace = [1.0 if name in "ba" else 0.01 for name in self.names]
        self.created = 0
        self.lac = -1
        self.queues: dict[str, list[LastStored]] = {name: [] for name in self.names}
        self.stored: dict[str, list[LastStored]] = {name: [] for name in self.names}
        self.answers: dict[str, list[int]] = {name: [] for name in self.names}
        self.acks: dict[int, set[str]] = {}
        self.replaced: set[str] = set()
        """Bookies with new disks, which take no entries of the writer."""
        self.old: set[int] = set()
        """Entries that the old disks acknowledged."""

    def step(self) -> None:
        name = self.chance.choices(self.names, self.pace)[0]
        match self.chance.choice(["create", "store", "store", "answer", "answer"]):
            case "create" if self.created - self.lac < 12:
                entry = LastStored(self.created, self.lac)
                for position in write_set(self.created, len(self.names), self.write_quorum):
                    target = self.names[position]
                    if target not in self.replaced:
                        self.queues[target].append(entry)
                self.created += 1
            case "store" if self.queues[name] and name not in self.replaced:
                entry = self.queues[name].pop(0)
                self.stored[name].append(entry)
                self.answers[name].append(entry.entry_id)
                if name == "b":
                    self.old.add(entry.entry_id)
            case "answer" if self.answers[name]:
                self.acks.setdefault(self.answers[name].pop(0), set()).add(name)
                while len(self.acks.get(self.lac + 1, ())) >= self.ack_quorum:
                    self.lac += 1

    def goes_on(self) -> bool:
        """Whether every entry finds an ack quorum."""
        absent = [position for position, name in enumerate(self.names) if name in self.replaced]
        return not is_endangered(absent, len(self.names), self.write_quorum, self.ack_quorum)

    def last_stored(self, silent: str) -> dict[str, LastStored]:
        return {
            name: max(self.stored[name], key=lambda last: last.entry_id, default=LastStored(-1, -1))
            for name in self.names
            if name not in silent and name not in self.replaced
        }


def has_proof(writer: Writer, silent: str) -> bool:
    """Whether a write set has fewer bookies that are silent or have new disks than its ack quorum."""
    sets = [write_set(first, len(writer.names), writer.write_quorum) for first in range(len(writer.names))]
    return any(
        sum(writer.names[position] in silent or writer.names[position] in writer.replaced for position in positions) < writer.ack_quorum
        for positions in sets
    )


SIZES = [(3, 3, 2), (3, 3, 3), (3, 2, 2), (4, 3, 2), (5, 3, 2), (3, 2, 1), (6, 3, 2), (6, 4, 2), (4, 4, 2)]


@pytest.mark.parametrize("seed", range(200))
def test_no_entry_of_the_old_disks_is_behind_the_end(seed: int) -> None:
    chance = random.Random(f"open refill {seed}")
    writer = Writer(chance, *chance.choice(SIZES))
    silent = chance.choice(["", "", "a"])
    also_replaced = chance.choice(["", "", *writer.names[1:]])
    replacements = [*also_replaced, "b"]
    chance.shuffle(replacements)
    for name in replacements:
        for _ in range(chance.randrange(200)):
            writer.step()
        writer.replaced.add(name)
    bound = OpenRefillBound()
    for _ in range(2000 if has_proof(writer, silent) and writer.goes_on() else 30):
        for _ in range(chance.randrange(20)):
            writer.step()
        if not bound.has_horizon:
            segment = EnsembleSegment(0, tuple(writer.names))
            bound.begin(segment, "b", writer.write_quorum, writer.ack_quorum, writer.last_stored(silent))
            writer.pace = [max(pace, 0.2) for pace in writer.pace]
        bound.observe(writer.last_stored(silent))
        if bound.end is not None:
            break
    assert bound.has_horizon is has_proof(writer, silent)
    if bound.end is not None:
        assert bound.end <= writer.lac, "everything up to the end can be copied"
        assert max(writer.old, default=-1) <= bound.end
    else:
        assert silent or not bound.has_horizon or not writer.goes_on(), "entries of a writer that goes on give a bound"
