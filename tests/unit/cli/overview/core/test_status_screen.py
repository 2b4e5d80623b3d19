"""The screen of a healthy, a wounded, a recovering and a large cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.cli.overview.cluster_facts_rig import NOW_MS, bookie, healthy, recovering, wounded
from triplicate.cli.overview.core.cluster_facts import BookieState, LedgerCounts, Listed, LogFacts, MarkFacts, ProgressFacts, ReplicaFacts
from triplicate.cli.overview.core.cluster_problems import problems_of
from triplicate.cli.overview.core.status_screen import WIDTH, screen_lines


def test_the_screen_of_a_healthy_cluster() -> None:
    assert screen_lines(healthy()) == [
        "HEALTHY: cluster an-instance, 2026-09-21T14:13:20Z",
        "",
        "BOOKIES 3: 3 writable; 12 ledgers, 2 open",
        "  location  host      bookie    state                 disk free  ledgers",
        "  /rack-1   10.0.1.1  bookie-1  writable  10.0 GiB of 100.0 GiB       12",
        "  /rack-2   10.0.2.1  bookie-2  writable  20.0 GiB of 100.0 GiB       11",
        "  /rack-3   10.0.3.1  bookie-3  writable  30.0 GiB of 100.0 GiB       12",
        "",
        "DATABASES 2 on 2 nodes",
        "  database  leader  copies",
        "  shop      node-1  2 of 2: node-2 follower -17",
        "  stock     node-2  2 of 2: node-1 follower",
        "",
        "LOGS 2",
        "  log     writer    open ledger  segments  reduced  missing  lost",
        "  events  a writer           41         3        0        0     0",
        "  old     -                   -         1        0        0     0",
        "",
        "UNDER-REPLICATED 0; auto-recovery enabled, auditor bookie-1",
    ]


def test_the_screen_of_a_wounded_cluster_begins_with_its_problems() -> None:
    lines = screen_lines(wounded())
    assert lines[:3] == [
        "9 PROBLEMS: cluster an-instance, 2026-09-21T14:13:20Z",
        "! 1 bookie is lost: bookie-2 (11 ledgers) > triplicate bookie list",
        "! 1 bookie does not answer: bookie-3 > triplicate bookie list",
    ]
    assert "BOOKIES 3: 2 writable, 1 lost; 12 ledgers, 2 open" in lines
    assert any("bookie-3" in line and "writable, silent" in line for line in lines)
    assert "  shop      none    node-2 diverged -3" in lines
    assert "UNDER-REPLICATED 2; auto-recovery disabled, auditor none" in lines
    assert "       7  bookie-2    10 min  -" in lines


def test_the_screen_of_a_recovering_cluster_names_the_workers() -> None:
    lines = screen_lines(recovering())
    assert lines[-6:] == [
        "  ledger  missing on  since  locked by",
        "       1  bookie-2    2 min  bookie-1",
        "       2  bookie-2    2 min  bookie-1",
        "       3  bookie-2    2 min  -",
        "       4  bookie-2    2 min  -",
        "       5  bookie-2    2 min  -",
    ]


def test_a_source_that_did_not_answer_is_shown_as_such() -> None:
    lines = screen_lines(replace(healthy(), logs=Listed((LogFacts("a", None, 1, None),), "late"), ledgers=LedgerCounts(5, 1, cut="late")))
    assert lines[1:3] == ["! not read completely: the ledgers, the logs: late", "    > triplicate cluster status --timeout 60"]
    assert "LOGS 1 or more" in lines
    assert any(line.startswith("BOOKIES 3: 3 writable; 5+ ledgers") for line in lines)


def test_a_large_cluster_fits_the_screen_and_nothing_urgent_is_left_out() -> None:
    lost = tuple(bookie(number, BookieState.LOST) for number in (190, 195))
    facts = replace(
        healthy(),
        bookies=Listed(tuple(bookie(number) for number in range(200)) + lost),
        databases=Listed(tuple(ReplicaFacts(f"database-{number}" * 5, None if number == 60 else "node", ()) for number in range(80))),
        logs=Listed(tuple(LogFacts(f"log-{number}", None, 1, None) for number in range(500))),
        marks=Listed(tuple(MarkFacts(number, ("bookie-190",), None, None) for number in range(1000))),
    )
    for width, height in ((80, 40), (60, 30), (200, 60)):
        lines = screen_lines(facts, width, height)
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
        text = "\n".join(lines)
        assert "lost" in text
        assert text.count("bookie-190 ") + text.count("bookie-195 ") >= 2
        assert "more: triplicate log list" in text
        assert "more: triplicate bookie list" in text
    wide = "\n".join(screen_lines(facts, 200, 60))
    assert "database-60" in wide
    assert "none" in wide


def test_the_text_of_a_problem_goes_on_in_further_lines() -> None:
    lost = tuple(bookie(number, BookieState.LOST) for number in range(10, 16))
    facts = replace(healthy(), bookies=Listed((bookie(1), *lost)))
    lines = screen_lines(facts)
    shown = lines[1 : next(place for place, line in enumerate(lines) if line.startswith("    > "))]
    assert len(shown) > 1
    assert " ".join(line.strip() for line in shown) == f"! {problems_of(facts)[0].text}"
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("width", [1, 8, 20])
def test_a_text_that_is_too_long_for_a_narrow_terminal_is_cut(width: int) -> None:
    lost = tuple(bookie(number, BookieState.LOST) for number in range(10, 90))
    lines = screen_lines(replace(healthy(), bookies=Listed((bookie(1), *lost))), width)
    assert any(line.endswith("…") for line in lines[1:4])
    assert max(map(len, lines[:4])) <= max(8, width)


def test_problems_that_do_not_fit_are_counted() -> None:
    read_only = tuple(bookie(number, BookieState.READ_ONLY) for number in range(20))
    lines = screen_lines(replace(healthy(), bookies=Listed((bookie(20), *read_only))))
    assert sum(line.startswith("! ") for line in lines) == 11
    assert "  … and 9 more: triplicate cluster status --json" in lines


def test_the_reason_of_a_failed_repair_is_shown_and_cut_to_the_width() -> None:
    marks = (MarkFacts(7, ("bookie-2",), NOW_MS - 600_000, None, "failed: " + "no bookie " * 20), MarkFacts(8, (), NOW_MS, None))
    lines = screen_lines(replace(healthy(), marks=Listed(marks)))
    assert lines[-3].split() == ["ledger", "missing", "on", "since", "locked", "by", "reason"]
    assert "10 min  -          failed: no bookie" in lines[-2]
    assert lines[-1].endswith("-")
    assert max(map(len, lines)) <= WIDTH


def test_repairs_that_run_are_shown_with_their_rates_and_time_left() -> None:
    fast, late = ProgressFacts(1200, 1 << 21, 5000, 40.0, 1 << 20, 95.0, 2.0), ProgressFacts(10, 99, None, 0.0, 0.0, None, 130.0)
    marks = (
        MarkFacts(7, ("bookie-2",), NOW_MS - 600_000, "bookie-1", progress=fast),
        MarkFacts(8, ("bookie-2",), NOW_MS, "bookie-3", progress=late),
        MarkFacts(9, ("bookie-2",), NOW_MS, None),
    )
    title, headings, *rows = screen_lines(replace(healthy(), marks=Listed(marks)), width=100)[-5:]
    assert title.startswith("UNDER-REPLICATED 3, 2 in repair at 1.0 MiB/s, 40 entries/s; auto-recovery enabled")
    assert headings.split()[-3:] == ["locked", "by", "copied"]
    assert rows[0].endswith("1200 of 5000, 1.0 MiB/s, 95 s left")
    assert rows[1].endswith("10, 0 B/s, 2 min ago")
    assert rows[2].endswith("-")


def test_repairs_without_a_record_have_no_column_for_it() -> None:
    lines = screen_lines(recovering())
    assert any(line.startswith("UNDER-REPLICATED 5, 2 in repair;") for line in lines)
    assert not any("copied" in line for line in lines)
