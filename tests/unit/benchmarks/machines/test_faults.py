"""The verdicts on the gaps after faults."""

from __future__ import annotations

from benchmarks.machines.faults import Gaps
from benchmarks.machines.probes import Writes


def test_gaps_meet_their_targets_or_say_by_how_much_they_do_not() -> None:
    assert Gaps("embedded", "kill", (0.9, 1.0, 4.9)).verdict == "met"
    assert Gaps("embedded", "kill", (0.9, 1.0, 5.5)).verdict == "worst missed by 0.50 s"
    assert Gaps("embedded", "kill", (2.5, 2.5, 6.0)).verdict == "median missed by 0.50 s; worst missed by 1.00 s"


def test_a_gap_ends_with_the_acknowledgement_of_a_write_begun_after_the_fault() -> None:
    writes = Writes(begun_at=[1.0, 2.0, 2.9, 3.5], acknowledged_at=[1.1, 3.2, 3.3, 4.0])
    assert writes.first_after(3.0) == 4.0
    assert writes.first_after(2.5) == 3.3
    assert writes.first_after(4.5) is None
