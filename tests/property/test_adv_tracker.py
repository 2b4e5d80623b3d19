"""The tracker of chosen ids against a model that counts naively, on random schedules with gaps.

Bookies fail, are replaced or come back.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.ledger import AdvWriteTracker

QUORUMS = [(1, 1, 1), (2, 2, 1), (3, 3, 2), (3, 2, 2), (3, 2, 1), (4, 3, 2), (5, 3, 2), (5, 2, 2)]


class Model:
    """Keeps a set of acknowledged entries per position and recounts everything each time."""

    def __init__(self, ensemble: list[str], write_quorum: int, ack_quorum: int) -> None:
        self.ensemble = ensemble
        self.write_quorum = write_quorum
        self.ack_quorum = ack_quorum
        self.order: list[int] = []
        self.stored: list[set[int]] = [set() for _ in ensemble]
        self.sent: list[set[int]] = [set() for _ in ensemble]
        self.absent: set[int] = set()
        self.confirmed = -1
        self.changing = False
        self.left_short: set[str] = set()
        """Bookies that left their position, or were absent, without a confirmed entry that they were to store."""

    def positions(self, entry_id: int) -> list[int]:
        return [(entry_id + i) % len(self.ensemble) for i in range(self.write_quorum)]

    def push(self, entry_id: int) -> None:
        self.order.append(entry_id)
        for position in self.positions(entry_id):
            self.sent[position].add(entry_id)

    def acknowledge(self, bookie_id: str, entry_ids: list[int]) -> None:
        position = self.ensemble.index(bookie_id) if bookie_id in self.ensemble else -1
        if position >= 0 and position not in self.absent:
            self.stored[position].update(e for e in entry_ids if e in self.sent[position])

    def replace(self, ensemble: list[str]) -> None:
        for position, bookie_id in enumerate(ensemble):
            if bookie_id != self.ensemble[position]:
                self.take(position)
        self.ensemble = ensemble

    def take(self, position: int) -> list[int]:
        """A bookie fills the position, for the first time or again: the entries to send to it, in order."""
        if self.lacks_confirmed(position):
            self.left_short.add(self.ensemble[position])
        self.absent.discard(position)
        self.stored[position] = set()
        pending = [e for e in self.order if e > self.confirmed and position in self.positions(e)]
        self.sent[position] = set(pending)
        return pending

    def advance(self) -> int:
        while not self.changing and self.confirmed + 1 in self.order:
            following = self.confirmed + 1
            if sum(following in self.stored[position] for position in self.positions(following)) < self.ack_quorum:
                break
            self.confirmed = following
        return self.confirmed

    def lacks_confirmed(self, position: int) -> bool:
        return any(e <= self.confirmed for e in self.sent[position] - self.stored[position])

    def reach(self, bookie_id: str) -> int:
        """Index of the last pushed entry up to which the bookie has acknowledged every entry sent to it; -1 for none."""
        if bookie_id in self.ensemble:
            position = self.ensemble.index(bookie_id)
            for mark, entry_id in enumerate(self.order):
                if position not in self.absent and entry_id in self.sent[position] and entry_id not in self.stored[position]:
                    return mark - 1
        return len(self.order) - 1


@settings(max_examples=examples(200), deadline=None)
@given(st.data(), st.sampled_from(QUORUMS), st.integers(1, 60))
def test_the_tracker_confirms_exactly_what_the_model_does(data: st.DataObject, quorums: tuple[int, int, int], steps: int) -> None:
    size, write_quorum, ack_quorum = quorums
    everybody = [f"b{i}" for i in range(size + 3)]
    tracker = AdvWriteTracker(everybody[:size], write_quorum, ack_quorum)
    model = Model(everybody[:size], write_quorum, ack_quorum)
    confirmed = -1
    for _ in range(steps):
        kind = data.draw(st.sampled_from(["push", "push", "some", "some", "all", "begin", "replace", "end", "fail", "back"]))
        if kind == "push":
            entry_id = data.draw(st.integers(max(0, confirmed - 2), confirmed + 8))
            assert tracker.is_taken(entry_id) == (entry_id in model.order or entry_id <= confirmed)
            if not tracker.is_taken(entry_id):
                tracker.push(entry_id)
                model.push(entry_id)
        elif kind in ("some", "all"):
            bookie_id = data.draw(st.sampled_from(everybody))
            entry_ids = list(model.order) if kind == "all" else data.draw(st.lists(st.integers(-2, confirmed + 10), max_size=6))
            tracker.acknowledge(bookie_id, entry_ids)
            model.acknowledge(bookie_id, entry_ids)
        elif kind == "begin" and not tracker.changing:
            tracker.begin_change()
            model.changing = True
        elif kind == "replace" and tracker.changing:
            position = data.draw(st.integers(0, size - 1))
            spare = [bookie_id for bookie_id in everybody if bookie_id not in tracker.ensemble]
            ensemble = list(tracker.ensemble)
            ensemble[position] = data.draw(st.sampled_from(spare))
            assert tracker.replace(ensemble) == [position]
            model.replace(ensemble)
            pending = [e for e in model.order if e > model.confirmed and position in model.positions(e)]
            assert tracker.pending_of(position) == pending
        elif kind == "end" and tracker.changing:
            tracker.end_change()
            model.changing = False
        elif kind == "fail":
            bookie_id = data.draw(st.sampled_from(everybody))
            tracker.suspend(bookie_id)
            if bookie_id in model.ensemble:
                model.absent.add(model.ensemble.index(bookie_id))
        elif kind == "back" and tracker.suspended:
            position = data.draw(st.sampled_from(tracker.suspended))
            assert tracker.resume(position) == model.take(position)
        advanced = tracker.advance()
        assert advanced == model.advance()
        assert confirmed <= advanced
        assert tracker.suspended == tuple(sorted(model.absent))
        assert tracker.is_held_back == (advanced + 1 not in model.order)
        assert [tracker.acked_through(bookie_id) for bookie_id in everybody] == [model.reach(bookie_id) for bookie_id in everybody]
        absent_and_short = {model.ensemble[at] for at in model.absent if model.lacks_confirmed(at)}
        assert set(tracker.left_short) == model.left_short | absent_and_short
        confirmed = advanced


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(QUORUMS), st.permutations(range(40)), st.randoms(use_true_random=False))
def test_every_entry_is_confirmed_once_all_were_pushed_and_answered(
    quorums: tuple[int, int, int], order: list[int], random: object
) -> None:
    size, write_quorum, ack_quorum = quorums
    tracker = AdvWriteTracker([f"b{i}" for i in range(size)], write_quorum, ack_quorum)
    for entry_id in order:
        tracker.push(entry_id)
    answers = [(f"b{(e + i) % size}", e) for e in range(40) for i in range(write_quorum)]
    random.shuffle(answers)  # type: ignore[attr-defined]
    for bookie_id, entry_id in answers:
        tracker.acknowledge(bookie_id, [entry_id])
    assert tracker.advance() == 39
    assert all(not tracker.pending_of(position) for position in range(size))
    assert all(tracker.acked_through(f"b{i}") == 39 for i in range(size))
