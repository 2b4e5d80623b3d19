"""Bit flips, short form: every n-th of them. `make crash-test` tries all."""

from __future__ import annotations

from tests.crash.flips import try_flips
from tests.examples import stride

STEP = 67


def test_no_entry_with_a_flipped_bit_is_returned_as_good() -> None:
    counts = try_flips(stride(STEP), 7)
    assert not counts.losses, "\n".join(counts.shown)
    for outcome in (
        "journal: refused to start",
        "journal: reported as a torn tail",
        "entry log: refused to start",
        "entry log: noticed by the client's digest",
        "entry log: answered with an I/O error",
        "index's commits: noticed at the start, nothing missing",
        "mark: refused to start",
        "cookie: refused to start",
    ):
        assert counts.outcomes[outcome], (outcome, counts.outcomes)


def test_no_flipped_bit_of_an_entry_log_is_returned_as_good() -> None:
    counts = try_flips(149, 3, ".entries")
    assert not counts.losses, "\n".join(counts.shown)
    assert counts.tried["bit flips"] > 100


def test_no_flipped_bit_of_a_journal_is_returned_as_good() -> None:
    counts = try_flips(29, 5, ".journal")
    assert not counts.losses, "\n".join(counts.shown)
    assert counts.outcomes["journal: refused to start"] > 30
    assert 0 < counts.outcomes["journal: reported as a torn tail"] < 20
