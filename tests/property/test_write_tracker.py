"""The write tracker against a model that counts acknowledgements naively, on random schedules with bookies that fail and come back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.ledger import WriteTracker

QUORUMS = [(1, 1, 1), (2, 2, 1), (3, 3, 2), (3, 2, 2), (3, 2, 1), (4, 3, 2), (5, 3, 2), (5, 3, 3), (5, 2, 2), (7, 3, 2)]


class Model:
    """Keeps a set of entries per position and recounts everything each time."""

    def __init__(self, ensemble: list[str], write_quorum: int, ack_quorum: int) -> None:
        self.ensemble = ensemble
        self.write_quorum = write_quorum
        self.ack_quorum = ack_quorum
        self.stored: list[set[int]] = [set() for _ in ensemble]
        self.since: list[int] = [0 for _ in ensemble]
        """The first entry sent to the bookie at each position when it joined."""
        self.absent: set[int] = set()
        self.pushed = -1
        self.confirmed = -1
        self.changing = False
        self.left_short: set[str] = set()
        """Bookies that the metadata name for a confirmed entry that they never acknowledged, and will not be sent any more."""

    def positions(self, entry_id: int) -> list[int]:
        return [(entry_id + i) % len(self.ensemble) for i in range(self.write_quorum)]

    def acknowledge(self, bookie_id: str, entry_ids: list[int]) -> None:
        position = self.ensemble.index(bookie_id) if bookie_id in self.ensemble else -1
        if position >= 0 and position not in self.absent:
            self.stored[position].update(e for e in entry_ids if 0 <= e <= self.pushed and position in self.positions(e))

    def replace(self, ensemble: list[str]) -> None:
        for position, bookie_id in enumerate(ensemble):
            if bookie_id != self.ensemble[position]:
                self.take(position)
        self.ensemble = ensemble

    def take(self, position: int) -> list[int]:
        """A bookie fills the position, for the first time or again: the entries to send to it."""
        if not self.owes_nothing_up_to(position, self.confirmed):
            self.left_short.add(self.ensemble[position])
        self.absent.discard(position)
        self.stored[position] = set()
        self.since[position] = self.confirmed + 1
        return [e for e in range(self.confirmed + 1, self.pushed + 1) if position in self.positions(e)]

    def advance(self) -> int:
        while not self.changing and self.confirmed < self.pushed:
            following = self.confirmed + 1
            if sum(following in self.stored[position] for position in self.positions(following)) < self.ack_quorum:
                break
            self.confirmed = following
        return self.confirmed

    def is_endangered(self) -> bool:
        return any(sum(p not in self.absent for p in self.positions(e)) < self.ack_quorum for e in range(len(self.ensemble)))

    def all_left_short(self) -> set[str]:
        return self.left_short | {self.ensemble[at] for at in self.absent if not self.owes_nothing_up_to(at, self.confirmed)}

    def owes_nothing_up_to(self, position: int, entry_id: int) -> bool:
        """Whether the bookie acknowledged every entry sent to it, up to an entry."""
        return all(e in self.stored[position] for e in range(self.since[position], entry_id + 1) if position in self.positions(e))


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.sampled_from(QUORUMS), st.integers(1, 60))
def test_the_tracker_confirms_exactly_what_the_model_does(data: st.DataObject, quorums: tuple[int, int, int], steps: int) -> None:
    size, write_quorum, ack_quorum = quorums
    everybody = [f"b{i}" for i in range(size + 3)]
    ensemble = everybody[:size]
    tracker, model = WriteTracker(ensemble, write_quorum, ack_quorum), Model(ensemble, write_quorum, ack_quorum)
    confirmed = -1
    for _ in range(steps):
        kind = data.draw(st.sampled_from(["push", "run", "run", "some", "some", "begin", "replace", "end", "fail", "back"]))
        if kind == "push":
            count = data.draw(st.integers(1, 8))
            tracker.push(count)
            model.pushed += count
        elif kind in ("run", "some"):
            bookie_id = data.draw(st.sampled_from(everybody))
            position = tracker.position_of(bookie_id)
            if kind == "run" and position is not None:
                reach = tracker.acked_through(bookie_id)
                own = [e for e in range(reach + 1, tracker.last_add_pushed + 1) if tracker.holds(position, e)]
                entry_ids = own[: data.draw(st.integers(0, 6))]
            else:
                entry_ids = data.draw(st.lists(st.integers(-2, tracker.last_add_pushed + 3), max_size=6))
            is_due = tracker.acknowledge_next(bookie_id, entry_ids[0]) if len(entry_ids) == 1 else None
            if is_due is None:
                tracker.acknowledge(bookie_id, entry_ids)
            model.acknowledge(bookie_id, entry_ids)
            if is_due is False:
                assert model.advance() == tracker.last_add_confirmed, "nobody would advance now"
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
        assert confirmed <= advanced <= tracker.last_add_pushed
        assert (tracker.suspended, tracker.is_endangered) == (tuple(sorted(model.absent)), model.is_endangered())
        for position, bookie_id in enumerate(tracker.ensemble):
            assert (tracker.position_of(bookie_id) is None) == (position in model.absent)
            if position not in model.absent:
                assert model.owes_nothing_up_to(position, tracker.acked_through(bookie_id))
        owed = [position for position in range(size) if not model.owes_nothing_up_to(position, model.pushed)]
        assert tracker.has_all_copies == (not owed and not model.absent and not model.left_short)
        assert set(tracker.left_short) == model.all_left_short()
        confirmed = advanced


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(QUORUMS), st.integers(1, 200), st.randoms(use_true_random=False))
def test_every_entry_is_confirmed_after_all_answers_in_any_order(quorums: tuple[int, int, int], count: int, random: object) -> None:
    size, write_quorum, ack_quorum = quorums
    tracker = WriteTracker([f"b{i}" for i in range(size)], write_quorum, ack_quorum)
    tracker.push(count)
    answers = [(f"b{(e + i) % size}", e) for e in range(count) for i in range(write_quorum)]
    random.shuffle(answers)  # type: ignore[attr-defined]
    for bookie_id, entry_id in answers:
        tracker.acknowledge(bookie_id, [entry_id])
    assert tracker.advance() == count - 1
    assert all(not tracker.pending_of(position) for position in range(size))
