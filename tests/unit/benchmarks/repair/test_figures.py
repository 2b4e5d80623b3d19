"""The figures of a repair: rates, the ratio of latencies, the table, and the targets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.repair.figures import HEADINGS, Repair, problems_of, row_of, table_of

MS = 1_000_000
REPAIR = Repair(
    "ours", "default", 225, 800_000_000, 10.0, 20.0, 4.0, [3 * MS] * 98 + [9 * MS, 10 * MS], [5 * MS] * 98 + [18 * MS, 20 * MS], 0
)


def test_a_repair_has_its_rate_and_its_ratio() -> None:
    assert REPAIR.mb_per_s == pytest.approx(40.0)
    assert REPAIR.before["p99_ms"] == pytest.approx(9.0)
    assert REPAIR.p99_ratio == pytest.approx(2.0)
    assert problems_of([REPAIR]) == []


def test_no_appends_are_no_ratio() -> None:
    assert replace(REPAIR, meanwhile_ns=[]).p99_ratio is None
    assert row_of(replace(REPAIR, meanwhile_ns=[]))[-2] == "-"


def test_the_table_has_a_row_for_each_repairer() -> None:
    heading, _, row = table_of([REPAIR]).splitlines()
    assert heading.count("|") == row.count("|") == len(HEADINGS) + 1
    assert row == "| ours | 20.0 | 800 | 40.0 | 4.0 | 5.0 | 9.00 | 18.00 | 2.00 | 0 |"


def test_missing_copies_and_slow_appends_are_problems() -> None:
    slow = replace(REPAIR, meanwhile_ns=[30 * MS] * 100)
    assert "3.33 times" in problems_of([slow])[0]
    assert problems_of([replace(slow, repairer="apache"), replace(slow, repairer="ours_unlimited")]) == []
    assert problems_of([replace(REPAIR, repairer="apache", incomplete=2)]) == ["apache: 2 ledgers lack copies"]
