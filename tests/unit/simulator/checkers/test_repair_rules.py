"""The checkers of self-healing, judged by written histories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.ledger_promises import Acknowledged, MetadataWritten, Sent
from triplicate_simulator.checkers.repair_rules import (
    REPAIR_CHECKERS,
    BookieDecommissioned,
    CopiesNamed,
    CopyFound,
    LedgerHealed,
    MarkDeleted,
    Rearranged,
    StoredInRacks,
    WriterHeldGone,
)

ABC = ("a", "b", "c")
RULES = (
    "ledgers_have_full_copies",
    "named_copies_are_complete",
    "marks_stay_until_repaired",
    "decommissioned_bookies_are_not_needed",
    "living_writers_are_not_fenced",
    "acknowledged_entries_span_racks",
    "repairs_undo_nothing",
)
CHECKERS = {name: REPAIR_CHECKERS[name] for name in RULES}


def blamed(*events: object) -> list[str]:
    return [verdict.checker for verdict in judge(History(list(events)), CHECKERS) if verdict.violations]


def version(number: int, *segments: tuple[int, tuple[str, ...]], state: str = "open", last: int = 9) -> MetadataWritten:
    end = (last, 100) if state == "closed" else (None, None)
    return MetadataWritten(float(number), 1, number, state, (3, 3, 2), segments, *end)


SENT = Sent(1.0, "writer", 1, 0, b"payload")
COPIES = [CopyFound(1, 0, name, f"machine of {name}", b"head payload", b"payload") for name in ABC]
HEALED = LedgerHealed(1, 0, 3)


def test_full_copies_on_different_machines_are_right() -> None:
    assert blamed(SENT, HEALED, *COPIES) == []


@pytest.mark.parametrize(
    "copies",
    [
        COPIES[:2],
        [*COPIES[:2], replace(COPIES[2], body=None, payload=None, problem="damaged")],
        [*COPIES[:2], replace(COPIES[2], machine="machine of a")],
        [*COPIES[:2], replace(COPIES[2], payload=b"another")],
        [*COPIES[:2], replace(COPIES[2], body=b"HEAD payload")],
    ],
    ids=["missing", "damaged", "on one machine", "another payload", "another header"],
)
def test_a_missing_or_different_copy_is_found(copies: list[CopyFound]) -> None:
    assert blamed(SENT, HEALED, *copies) == ["ledgers_have_full_copies"]


def test_copies_of_a_logs_entry_are_compared_with_each_other() -> None:
    of_log = replace(HEALED, is_of_log=True)
    assert blamed(of_log, *COPIES) == []
    assert blamed(of_log, *COPIES[:2], replace(COPIES[2], payload=b"another")) == ["ledgers_have_full_copies"]


def test_a_recovery_may_write_another_header() -> None:
    recovered = version(1, (0, ABC), state="in recovery")
    assert blamed(recovered, SENT, HEALED, *COPIES[:2], replace(COPIES[2], body=b"HEAD payload")) == []


def test_a_bookie_is_named_with_all_its_entries() -> None:
    named = CopiesNamed(1.0, "d", 1, 0, 9, ())
    assert blamed(named) == []
    assert blamed(replace(named, missing=(9,))) == ["named_copies_are_complete"]


def test_a_mark_stays_while_copies_lack() -> None:
    assert blamed(MarkDeleted(1.0, 1, ())) == []
    assert blamed(MarkDeleted(1.0, 1, ("b",))) == ["marks_stay_until_repaired"]


def test_a_decommissioned_bookie_is_not_needed() -> None:
    done = BookieDecommissioned(1.0, "d", (), ())
    assert blamed(done, SENT, HEALED, *COPIES) == []
    found = ["decommissioned_bookies_are_not_needed"]
    assert blamed(replace(done, named_by=(1,))) == found
    assert blamed(replace(done, alone=((1, 0),))) == found
    assert blamed(replace(done, bookie_id="a"), SENT, HEALED, *COPIES) == found


@pytest.mark.parametrize(
    ("sent_s", "acknowledged_s", "found"),
    [(10.0, 10.1, True), (6.0, 10.1, False), (10.0, 12.5, False)],
    ids=["within the grace period", "sent before it", "acknowledged after the last look"],
)
def test_a_writer_that_shows_itself_is_not_fenced(sent_s: float, acknowledged_s: float, found: bool) -> None:
    events = [Sent(sent_s, "writer", 1, 0, b""), Acknowledged(acknowledged_s, "writer", 1, 0), WriterHeldGone(12.0, 12.1, "worker", 1, 4.0)]
    assert blamed(*events) == (["living_writers_are_not_fenced"] if found else [])


CLOSED = version(1, (0, ABC), (5, ABC), state="closed")
OPEN = version(1, (0, ABC), (5, ABC))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CLOSED, version(2, (0, ("d", "b", "c")), (5, ABC), state="closed")),
        (OPEN, version(2, (0, ("d", "b", "c")), (5, ABC))),
        (OPEN, version(2, (0, ABC), (5, ("d", "e", "c")))),
        (OPEN, version(2, (0, ABC), (5, ABC), (8, ("a", "d", "c")))),
        (OPEN, version(2, (0, ABC), (5, ("d", "b", "c")), state="closed")),
    ],
    ids=["repair", "repair of an open ledger", "another last segment", "one more segment", "a recovery closes"],
)
def test_one_change_at_a_time_is_right(before: MetadataWritten, after: MetadataWritten) -> None:
    assert blamed(before, after) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CLOSED, version(2, (0, ("d", "b", "c")), (5, ("d", "b", "c")), state="closed")),
        (CLOSED, version(2, (0, ABC), (5, ABC))),
        (CLOSED, version(2, (0, ABC), (5, ABC), state="closed", last=8)),
        (CLOSED, version(2, (0, ABC), state="closed")),
        (OPEN, version(2, (0, ABC))),
        (OPEN, version(2, (0, ("d", "b", "c")), (5, ABC), (8, ABC))),
        (OPEN, version(1, (0, ("d", "b", "c")), (5, ABC))),
        (OPEN, replace(version(2, (0, ABC), (5, ABC)), sizes=(3, 2, 2))),
    ],
    ids=["two repairs", "opened", "shortened", "segment gone", "a writer's segment gone", "repair and segment", "same version", "sizes"],
)
def test_a_change_that_undoes_another_is_found(before: MetadataWritten, after: MetadataWritten) -> None:
    assert blamed(before, after) == ["repairs_undo_nothing"]


def test_bookies_replaced_together_are_right_as_a_worker_planned_it_for_the_present_ensemble() -> None:
    plan = Rearranged(1.5, "worker", 1, 0, ABC, ("d", "e", "c"))
    after = version(2, (0, ("d", "e", "c")), (5, ABC), state="closed")
    assert blamed(CLOSED, plan, after) == []
    assert blamed(CLOSED, after) == ["repairs_undo_nothing"]
    changed_meanwhile = version(1, (0, ("a", "b", "f")), (5, ABC), state="closed")
    assert blamed(changed_meanwhile, plan, after) == ["repairs_undo_nothing"]
    assert blamed(CLOSED, plan, replace(after, segments=((0, ("d", "e", "c")), (5, ("a", "b", "f"))))) == ["repairs_undo_nothing"]


def test_an_entry_acknowledged_in_too_few_racks_is_blamed() -> None:
    stored = StoredInRacks(1.0, 1, 0, ("/rack-1", "/rack-2"), 2)
    assert blamed(stored) == []
    assert blamed(replace(stored, racks=("/rack-1",))) == ["acknowledged_entries_span_racks"]
