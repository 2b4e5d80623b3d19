"""The record of a run: its digest, and facts in a form that is the same in every process."""

from __future__ import annotations

import enum
import random
from pathlib import PurePosixPath

import pytest

from triplicate.sim.recorder import GATHERED_MAX, Recorder, canonical


class Colour(enum.StrEnum):
    RED = "red"


class Number(int):
    def __repr__(self) -> str:
        return f"<{id(self)}>"


def test_the_digest_covers_time_node_kind_and_facts() -> None:
    def digest(*facts: tuple[float, str, str, dict[str, object]]) -> str:
        times = [time_s for time_s, _, _, _ in facts]
        recorder = Recorder(lambda: times[0])
        for _, node, kind, values in facts:
            recorder.fact(node, kind, values)
            times.pop(0)
        return recorder.hexdigest()

    base = digest((1.0, "a", "x.y", {"n": 1, "m": 2}))
    assert base == digest((1.0, "a", "x.y", {"m": 2, "n": 1}))
    assert len({base, digest((1.5, "a", "x.y", {"n": 1, "m": 2})), digest((1.0, "b", "x.y", {"n": 1, "m": 2})), digest()}) == 4


def test_facts_are_recorded_in_a_form_without_addresses_and_set_order() -> None:
    words = [f"word-{number}" for number in range(50)]
    shuffled = list(words)
    random.Random(3).shuffle(shuffled)
    assert canonical(set(words)) == canonical(set(shuffled))
    assert canonical({"b": 1, "a": (True, None, b"x", 1.5)}) == "{'a': (True, None, b'x', 1.5), 'b': 1}"
    assert canonical(ValueError("no")) == "ValueError: no"
    with pytest.raises(TypeError, match="plain values"):
        canonical(object())


def test_a_timeline_reads_as_one_fact_a_line() -> None:
    recorder = Recorder(lambda: 1.25, facts_max=1)
    recorder.fact("bookie-1", "journal.roll", {"file": 3})
    recorder.fact("bookie-1", "journal.roll", {"file": 4})
    assert [str(fact).split() for fact in recorder.facts] == [["1.250000", "bookie-1", "journal.roll", "file=3"]]
    assert recorder.counts == {"journal.roll": 2}


def test_the_digest_does_not_depend_on_when_it_is_asked_for() -> None:
    def digest(asked: bool) -> str:
        recorder = Recorder(lambda: 1.0)
        for number in range(3 * GATHERED_MAX + 7):
            recorder.note("net", number, b"x", None, True, 1.5)
            if asked and number % 100 == 0:
                recorder.hexdigest()
        return recorder.hexdigest()

    assert digest(asked=False) == digest(asked=True)


def test_equal_values_give_the_same_digest_whether_or_not_they_are_the_same_object() -> None:
    def digest(first: object, second: object) -> str:
        recorder = Recorder(lambda: 1.0)
        recorder.note("pair", first, second)
        return recorder.hexdigest()

    for value, other in (("a name", "".join(["a ", "name"])), (b"bytes", bytes(bytearray(b"bytes"))), (10**20, int("1" + "0" * 20))):
        assert value is not other
        assert digest(value, value) == digest(value, other) == digest(other, value)
    assert len({digest(*pair) for pair in ((1, 0), (True, False), (1.0, 0.0), ("1", "0"), (b"1", b"0"), (None, 0))}) == 6


def test_each_note_counts_in_the_digest_wherever_it_stands() -> None:
    def digest(changed: int) -> str:
        recorder = Recorder(lambda: 1.0)
        for number in range(2 * GATHERED_MAX):
            recorder.note("net", number == changed)
        return recorder.hexdigest()

    places = (0, 1, GATHERED_MAX - 1, GATHERED_MAX, 2 * GATHERED_MAX - 1, -1)
    assert len({digest(place) for place in places}) == len(places)


def test_what_changes_after_it_was_noted_was_noted_as_it_was() -> None:
    def digest(later: bool) -> str:
        recorder = Recorder(lambda: 1.0)
        values = [1, 2]
        recorder.note("list", values)
        if later:
            values.append(3)
        return recorder.hexdigest()

    assert digest(later=False) == digest(later=True)


def test_types_that_write_themselves_otherwise_are_written_as_what_they_are() -> None:
    assert canonical(Number(5)) == "5"
    assert canonical(Colour.RED) == "RED"
    assert canonical(bytearray(b"x")) == "b'x'"

    def digest(value: object) -> str:
        recorder = Recorder(lambda: 1.0)
        recorder.note("value", value)
        return recorder.hexdigest()

    assert digest(Number(5)) == digest(Number(5))
    with pytest.raises(TypeError, match="plain values"):
        digest(PurePosixPath("/"))


def test_facts_beyond_the_bound_are_counted_and_still_part_of_the_digest() -> None:
    short, long = Recorder(lambda: 0.0, facts_max=1), Recorder(lambda: 0.0)
    for recorder in (short, long):
        recorder.fact("node", "first", {})
        recorder.fact("node", "second", {})
    assert ([fact.kind for fact in short.facts], short.dropped, long.dropped) == (["first"], 1, 0)
    assert short.hexdigest() == long.hexdigest()
