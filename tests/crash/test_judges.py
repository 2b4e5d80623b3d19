"""The checks of the crash tests themselves: made-up answers that they must accept or refuse."""

from __future__ import annotations

from tests.crash.flips import Flip, is_named, judge
from tests.crash.trial import FAILS_DIGEST, LOST, UNREADABLE, Verdict, list_problems
from triplicate.ledger import encode_availability
from triplicate.wire import ListEntriesResponse, Status

JOURNAL = "/journal-1/current/0000000000000003.journal"
LAST = JOURNAL, 8192
LOST_LAST = f"ledger 4 entry 1: {LOST} (NO_ENTRY)"


def judged(offset: int, *problems: str, torn_at: int | None = None) -> list[str]:
    facts: list[tuple[str, dict[str, object]]] = [("bookie.torn_tail", {"path": JOURNAL, "offset": torn_at})] if torn_at is not None else []
    return judge(Flip(JOURNAL, offset, 0, False), Verdict(list(problems), facts), LAST)[1]


def test_behind_a_torn_tail_only_items_of_the_last_group_may_be_missing() -> None:
    assert judged(8200, LOST_LAST, torn_at=8192) == []
    assert judged(8200, f"ledger 1 entry 4: {LOST} (NO_ENTRY)", torn_at=8192)
    assert judged(4100, LOST_LAST, torn_at=4096)
    assert judged(4100, LOST_LAST, torn_at=8192)
    assert judged(8200, LOST_LAST)


def test_only_an_error_answer_or_a_failed_digest_excuses_a_missing_entry() -> None:
    assert judged(5000, f"ledger 1 entry 0: {UNREADABLE} (IO_ERROR)", f"ledger 1 entry 1: {FAILS_DIGEST}") == []
    assert judged(5000, "ledger 1: it is there, and has no list (NO_LEDGER)")
    assert judged(5000, f"ledger 1 entry 0: {UNREADABLE} (IO_ERROR)", "ledger 1: listed are [0], read were [1], damaged are [0]")


def test_a_refused_start_names_the_damaged_file() -> None:
    assert is_named(JOURNAL, f"{JOURNAL}: damaged")
    assert not is_named(JOURNAL, "/journal-1/current/0000000000000002.journal: damaged")
    assert is_named("/ledgers-1/current/index.db-commits", "/ledgers-1/current/index.db: damaged")
    assert is_named("/ledgers-1/current/VERSION", "/ledgers-1: its VERSION file says")
    assert not is_named("/ledgers-1/current/VERSION", "/ledgers-1/current/index.db: damaged")


def test_a_list_has_the_entries_read_and_beyond_them_only_damaged_ones() -> None:
    def problems(listed: list[int], unread: set[int]) -> list[str]:
        answer = ListEntriesResponse(Status.OK, 1, encode_availability(range(entry, entry + 1) for entry in listed))
        return list_problems(answer, {0: b"", 2: b""}, unread)

    assert problems([0, 2], set()) == problems([0, 1, 2], {1}) == problems([0, 2], {1}) == []
    assert problems([0, 1, 2], set())
    assert problems([0, 1], {1})
    assert list_problems(ListEntriesResponse(Status.NO_LEDGER, 1), {}, {0})
