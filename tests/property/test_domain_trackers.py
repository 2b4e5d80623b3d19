"""The trackers with fault domains against one model that counts naively, on random schedules with bookies that fail and come back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.ledger import AckDomains, AdvDomainWriteTracker, DomainWriteTracker

QUORUMS = [(2, 2, 1), (3, 3, 2), (3, 3, 1), (3, 2, 2), (3, 2, 1), (4, 3, 2), (5, 3, 2), (5, 3, 3), (5, 2, 1), (6, 4, 2)]

Tracker = DomainWriteTracker | AdvDomainWriteTracker


class Model:
    """Keeps a set of entries per position, and looks every domain up by the name of its bookie."""

    def __init__(self, ensemble: list[str], sizes: tuple[int, int], domains: dict[str, int], needed: int) -> None:
        self.ensemble = ensemble
        self.write_quorum, self.ack_quorum = sizes
        self.domains = domains
        self.needed = needed
        self.pushed: set[int] = set()
        self.stored: list[set[int]] = [set() for _ in ensemble]
        self.absent: set[int] = set()
        self.confirmed = -1
        self.changing = False

    def bits(self) -> AckDomains:
        return AckDomains(self.needed, tuple(1 << self.domains[bookie_id] for bookie_id in self.ensemble))

    def positions(self, entry_id: int) -> list[int]:
        return [(entry_id + i) % len(self.ensemble) for i in range(self.write_quorum)]

    def acknowledge(self, bookie_id: str, entry_ids: list[int]) -> None:
        position = self.ensemble.index(bookie_id) if bookie_id in self.ensemble else -1
        if position >= 0 and position not in self.absent:
            self.stored[position].update(e for e in entry_ids if e in self.pushed and position in self.positions(e))

    def restart(self, position: int) -> None:
        self.absent.discard(position)
        self.stored[position] = {e for e in self.stored[position] if e <= self.confirmed}

    def reaches(self, positions: list[int], *, domains: bool) -> bool:
        found = {self.domains[self.ensemble[position]] for position in positions}
        return len(positions) >= self.ack_quorum and (not domains or len(found) >= self.needed)

    def prefix(self, *, domains: bool) -> int:
        """The last entry that, with all before it, has what it needs."""
        last = self.confirmed
        while last + 1 in self.pushed:
            holders = [position for position in self.positions(last + 1) if last + 1 in self.stored[position]]
            if not self.reaches(holders, domains=domains):
                break
            last += 1
        return last

    def advance(self) -> int:
        if not self.changing:
            self.confirmed = self.prefix(domains=True)
        return self.confirmed

    def is_endangered(self) -> bool:
        left = [[p for p in self.positions(e) if p not in self.absent] for e in range(len(self.ensemble))]
        return bool(self.absent) and not all(self.reaches(positions, domains=True) for positions in left)


def push(data: st.DataObject, tracker: Tracker, model: Model) -> None:
    if isinstance(tracker, DomainWriteTracker):
        count = data.draw(st.integers(1, 6))
        model.pushed.update(range(tracker.last_add_pushed + 1, tracker.last_add_pushed + 1 + count))
        tracker.push(count)
    else:
        entry_id = data.draw(st.integers(model.confirmed + 1, model.confirmed + 6))
        if not tracker.is_taken(entry_id):
            tracker.push(entry_id)
            model.pushed.add(entry_id)


def acknowledge(data: st.DataObject, tracker: Tracker, model: Model, bookie_id: str, *, several: bool) -> None:
    known = [e for e in sorted(model.pushed) if e > model.confirmed - 3] or [0]
    entry_ids = (
        data.draw(st.lists(st.sampled_from([-1, *known]), max_size=6)) if several else known[: data.draw(st.sampled_from([1, 2, 8]))]
    )
    is_due = tracker.acknowledge_next(bookie_id, entry_ids[0]) if len(entry_ids) == 1 else None
    if is_due is None:
        tracker.acknowledge(bookie_id, entry_ids)
    model.acknowledge(bookie_id, entry_ids)
    if is_due is False:
        assert model.advance() == tracker.last_add_confirmed, "nobody would advance now"


def replace(data: st.DataObject, tracker: Tracker, model: Model, bookie_id: str) -> None:
    position = data.draw(st.integers(0, len(model.ensemble) - 1))
    model.ensemble = [*model.ensemble[:position], bookie_id, *model.ensemble[position + 1 :]]
    assert tracker.replace(model.ensemble, model.bits()) == [position]
    model.restart(position)


def step(data: st.DataObject, tracker: Tracker, model: Model, everybody: list[str]) -> None:
    kinds = ["push", "push", "run", "run", "run", "some", "some", "swap", "swap", "begin", "replace", "end", "fail", "back"]
    kind = data.draw(st.sampled_from(kinds))
    # Answers come from the ensemble, rarely from others.
    bookie_id = data.draw(st.sampled_from([*model.ensemble, *model.ensemble, *everybody] if kind in ("run", "some") else everybody))
    if kind == "push":
        push(data, tracker, model)
    elif kind in ("run", "some"):
        acknowledge(data, tracker, model, bookie_id, several=kind == "some")
    elif kind == "begin" and not tracker.changing:
        tracker.begin_change()
        model.changing = True
    elif kind == "swap" and not tracker.changing and bookie_id not in model.ensemble:
        tracker.begin_change()
        replace(data, tracker, model, bookie_id)
        tracker.end_change()
    elif kind == "replace" and tracker.changing and bookie_id not in model.ensemble:
        replace(data, tracker, model, bookie_id)
    elif kind == "end" and tracker.changing:
        tracker.end_change()
        model.changing = False
    elif kind == "fail" and bookie_id in model.ensemble:
        tracker.suspend(bookie_id)
        model.absent.add(model.ensemble.index(bookie_id))
    elif kind == "back" and tracker.suspended:
        position = data.draw(st.sampled_from(tracker.suspended))
        tracker.resume(position)
        model.restart(position)


@settings(max_examples=examples(120), deadline=None)
@given(st.data(), st.sampled_from(QUORUMS), st.booleans(), st.integers(10, 50))
def test_an_entry_is_confirmed_by_an_ack_quorum_in_enough_domains(
    data: st.DataObject, quorums: tuple[int, int, int], is_adv: bool, steps: int
) -> None:
    size, write_quorum, ack_quorum = quorums
    everybody = [f"b{i}" for i in range(size + 3)]
    domains = {bookie_id: data.draw(st.integers(0, 2)) for bookie_id in everybody}
    model = Model(everybody[:size], (write_quorum, ack_quorum), domains, data.draw(st.sampled_from([1, 2, 2, 2, 3])))
    kind = AdvDomainWriteTracker if is_adv else DomainWriteTracker
    tracker = kind(everybody[:size], write_quorum, ack_quorum, model.bits())
    confirmed = -1
    for _ in range(steps):
        step(data, tracker, model, everybody)
        advanced = tracker.advance()
        assert advanced == model.advance()
        assert confirmed <= advanced
        assert tracker.waiting_for_domains == (0 if model.changing else model.prefix(domains=False) - advanced)
        assert tracker.is_endangered == model.is_endangered()
        confirmed = advanced


@settings(max_examples=examples(80), deadline=None)
@given(st.data(), st.sampled_from(QUORUMS), st.booleans())
def test_the_limited_number_of_domains_is_the_greatest_that_every_entry_finds(
    data: st.DataObject, quorums: tuple[int, int, int], is_partial: bool
) -> None:
    size, write_quorum, _ = quorums
    found = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    needed = data.draw(st.integers(1, write_quorum))
    absent = data.draw(st.sets(st.integers(0, size - 1), max_size=1)) if is_partial else set[int]()
    sets = [[(first + i) % size for i in range(write_quorum)] for first in range(size)]
    spans = [len({found[position] for position in positions if position not in absent}) for positions in sets]
    limited = AckDomains(needed, tuple(1 << number for number in found)).limited(absent, write_quorum)
    assert limited.needed == max(1, min(needed, *spans))
