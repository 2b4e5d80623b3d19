"""The judge of logs under the names of deleted ones, held to histories written by hand."""

from __future__ import annotations

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.recreation_rules import RECREATION_CHECKERS, NextLogRead


def violations(found_id: str | None, *found: bytes) -> str:
    history = History()
    history.add(NextLogRead(1.0, "l", "one", (b"a", b"b"), found_id, found))
    return "\n".join(violation for verdict in judge(history, RECREATION_CHECKERS) for violation in verdict.violations)


def test_a_log_that_is_as_it_was_made_passes() -> None:
    assert not violations("one", b"a", b"b")


@pytest.mark.parametrize(
    ("found_id", "found", "reason"),
    [
        (None, (), "is gone"),
        ("two", (b"a", b"b"), "has the id two"),
        ("one", (b"a",), "were acknowledged"),
        ("one", (b"b", b"a"), "were ack"),
    ],
)
def test_others_do_not(found_id: str | None, found: tuple[bytes, ...], reason: str) -> None:
    assert reason in violations(found_id, *found)
