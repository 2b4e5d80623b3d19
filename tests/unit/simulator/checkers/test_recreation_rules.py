"""The judge of what is made under the names of deleted things, held to histories written by hand."""

from __future__ import annotations

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.recreation_rules import LOG_RECREATION, NextLifeRead


def violations(event: NextLifeRead) -> str:
    history = History()
    history.add(event)
    (verdict,) = judge(history, LOG_RECREATION)
    assert verdict.decided == 1
    return "\n".join(verdict.violations)


def read(found_id: str | None, *found: bytes, possible: tuple[bytes, ...] = ()) -> NextLifeRead:
    return NextLifeRead(1.0, "log l", "one", (b"a", b"b"), found_id, found, possible)


def test_one_that_is_as_it_was_made_passes() -> None:
    assert not violations(read("one", b"a", b"b"))


def test_a_write_of_unknown_outcome_may_be_there() -> None:
    assert not violations(read("one", b"a", b"c", b"b", possible=(b"c",)))
    assert not violations(read("one", b"a", b"b", possible=(b"c",)))


@pytest.mark.parametrize(
    ("found_id", "found", "reason"),
    [
        (None, (), "is gone"),
        ("two", (b"a", b"b"), "has the id two"),
        ("one", (b"a",), "were acknowledged"),
        ("one", (b"a", b"b", b"z"), "were acknowledged"),
        ("one", (b"b", b"a"), "were ack"),
    ],
)
def test_others_do_not(found_id: str | None, found: tuple[bytes, ...], reason: str) -> None:
    assert reason in violations(read(found_id, *found))
    assert reason in violations(read(found_id, *found, possible=(b"c",)))


def test_properties_are_as_they_were_set_last() -> None:
    set_last = {"weight": "2.0"}
    assert not violations(NextLifeRead(1.0, "database d", "one", (), "one", (), (), set_last, {"weight": "2.0", "owner": "x"}))
    found = violations(NextLifeRead(1.0, "database d", "one", (), "one", (), (), set_last, {"weight": "1.0"}))
    assert "has weight '1.0', and '2.0' was set last" in found
