"""The comparison's arithmetic: percentiles, ratios, and what the table says."""

from __future__ import annotations

import pytest

from benchmarks.driving import percentile
from benchmarks.ledger.figures import summary
from benchmarks.ledger.ratios import TARGETS, Run, Runs, ratios
from benchmarks.ledger.table import CASES, FIGURES, case_rows, number, target_rows

SHIPPED, ADVISED = "apache_shipped", "apache_advised"


def run(side: str, case: str, number: int = 1, **figures: float) -> Run:
    return Run(side, case, number, figures)


def test_a_percentile_is_a_value_that_was_seen() -> None:
    assert [percentile([1, 2, 3, 4], share) for share in (0.0, 0.25, 0.5, 0.51, 0.99, 1.0)] == [1, 1, 2, 3, 4, 4]
    assert percentile([7], 0.5) == 7


def test_a_summary_is_in_milliseconds() -> None:
    figures = summary([3_000_000, 1_000_000, 2_000_000])
    assert figures == {"count": 3, "p50_ms": 2.0, "p99_ms": 3.0, "p999_ms": 3.0, "max_ms": 3.0}
    assert summary([]) == {"count": 0}


def test_nothing_measured_leaves_every_target_open() -> None:
    found = ratios(Runs([]))
    assert set(found) == {target.key for target in TARGETS}
    assert set(found.values()) == {None}


def test_a_rate_counts_against_the_better_of_apaches_settings() -> None:
    runs = Runs([run("ours", "append_1k", per_s=60.0), run(SHIPPED, "append_1k", per_s=10.0), run(ADVISED, "append_1k", per_s=20.0)])
    assert ratios(runs)["append_1k_vs_apache"] == pytest.approx(1.5)


def test_a_latency_counts_against_the_better_of_apaches_settings() -> None:
    runs = Runs([run("ours", "rate_5000", p99_ms=2.0), run(SHIPPED, "rate_5000", p99_ms=8.0), run(ADVISED, "rate_5000", p99_ms=6.0)])
    assert ratios(runs)["p99_5000_vs_apache"] == pytest.approx(1.5)


def test_one_of_apaches_settings_alone_is_not_enough() -> None:
    runs = Runs([run("ours", "append_1k", per_s=60.0), run(SHIPPED, "append_1k", per_s=10.0), Run(ADVISED, "append_1k", 1, None, "late")])
    assert ratios(runs)["append_1k_vs_apache"] is None


def test_rounds_count_with_their_median() -> None:
    runs = Runs([run("ours", "recovery", number, recovery_s=seconds) for number, seconds in enumerate((0.2, 9.0, 0.4))])
    assert ratios(runs)["recovery_s"] == pytest.approx(2.5)


def test_processor_time_counts_at_its_worst_size() -> None:
    cases = {"append_100": (10.0, 40.0), "append_1k": (10.0, 30.0), "append_16k": (10.0, 15.0)}
    runs = [run("ours", case, cpu_s_per_million=ours) for case, (ours, _) in cases.items()]
    for side in (SHIPPED, ADVISED):
        runs += [run(side, case, cpu_s_per_million=theirs) for case, (_, theirs) in cases.items()]
    assert ratios(Runs(runs))["cpu_per_entry_vs_apache"] == pytest.approx(0.75)
    assert ratios(Runs(runs[:-1]))["cpu_per_entry_vs_apache"] is None


def test_catch_up_counts_against_the_faster_way_that_apache_reads() -> None:
    runs = [run("ours", "catch_up_cold", per_s=400.0)]
    for side, ranges, batches in ((SHIPPED, 10.0, 50.0), (ADVISED, 20.0, 100.0)):
        runs += [run(side, "catch_up_cold", per_s=ranges)] + ([run(side, "batch_cold", per_s=batches)] if side == ADVISED else [])
    assert ratios(Runs(runs))["catch_up_read_vs_apache"] == pytest.approx(2.0)


def test_the_window_of_one_may_take_what_the_disk_takes_as_well() -> None:
    runs = [run("ours", "window_1", p50_ms=0.5)]
    assert ratios(Runs(runs, fdatasync_p50_ms=0.06))["window_1_p50"] == pytest.approx(1.0)
    assert ratios(Runs(runs))["window_1_p50"] is None


def test_memory_counts_at_its_most_in_any_case_of_ours() -> None:
    runs = [
        Run("ours", "append_1k", 1, {}, memory_mib={"bookie-1": 100.0, "client": 900.0}),
        Run("ours", "stalled", 1, {}, memory_mib={"bookie-1": 120.0, "bookie-2": 140.0}),
        Run("apache_shipped", "append_1k", 1, {}, memory_mib={"bookie-1": 2000.0}),
    ]
    assert ratios(Runs(runs, bounds_mib=130.0))["memory_bounds"] == pytest.approx(1.5)
    crossed = Run("crossed", "warm_up", 1, {}, memory_mib={"bookie-3": 210.0})
    assert ratios(Runs([*runs, crossed], bounds_mib=130.0))["memory_bounds"] == pytest.approx(1.0)


STALLED = Run("ours", "stalled", 1, {}, memory_mib={"bookie-1": 120.0})


@pytest.mark.parametrize(
    "other",
    [
        Run("ours", "append_1k", 1, None, "late", memory_mib={"bookie-1": 100.0}),
        Run("crossed", "warm_up", 1, None, "the side does not start"),
        Run("ours", "append_1k", 1, {}),
    ],
)
def test_memory_is_open_when_any_case_on_our_bookies_failed(other: Run) -> None:
    assert ratios(Runs([STALLED], bounds_mib=130.0))["memory_bounds"] == pytest.approx(1.75)
    assert ratios(Runs([STALLED, other], bounds_mib=130.0))["memory_bounds"] is None


def test_memory_is_open_when_the_stalled_disk_was_not_measured() -> None:
    appended = Run("ours", "append_1k", 1, {}, memory_mib={"bookie-1": 100.0})
    failed = Run("ours", "stalled", 1, None, "the disk was not stalled", memory_mib={"bookie-1": 120.0})
    for runs in ([appended], [appended, failed]):
        assert ratios(Runs(runs, bounds_mib=130.0))["memory_bounds"] is None


def test_memory_is_open_when_a_planned_case_was_left_out() -> None:
    planned = [("ours", "stalled", 1), ("apache_shipped", "fill", 1)]
    assert ratios(Runs([STALLED], bounds_mib=130.0, planned=planned))["memory_bounds"] == pytest.approx(1.75)
    planned.append(("crossed", "append_1k", 1))
    assert ratios(Runs([STALLED], bounds_mib=130.0, planned=planned))["memory_bounds"] is None


def test_growth_is_what_many_ledgers_add() -> None:
    runs = [
        run("ours", "ledgers_few", p99_ms=1.0, memory_mib=100.0),
        run("ours", "ledgers_many", p99_ms=2.4, memory_mib=110.0, start_s=1.0),
    ]
    found = ratios(Runs(runs))
    assert found["p99_many_ledgers"] == pytest.approx(0.5)
    assert found["memory_many_ledgers"] == pytest.approx(1.2 / 1.1)
    assert found["start_many_ledgers_s"] == pytest.approx(2.0)


def test_a_case_that_failed_is_shown_as_failed() -> None:
    runs = Runs([run("ours", "append_1k", per_s=81_234.0), Run(SHIPPED, "append_1k", 1, None, "late")])
    row = next(row for row in case_rows(runs, ["ours", SHIPPED, "crossed"]) if row[0].startswith("append 1 KiB"))
    assert row[1:] == ["entries/s", "81,234", "failed", ""]


def test_the_table_of_targets_says_by_how_much_one_is_missed() -> None:
    rows = {row[0]: row[1:] for row in target_rows(Runs([run("ours", "recovery", recovery_s=1.25)]))}
    assert rows["recovery of 100,000 entries"] == ["<= 1.00 s", "1.25 s", "0.80", "missed: 20 % short"]
    assert rows["start with 10,000 ledgers"][-1] == "not measured"


def test_every_figure_of_the_table_has_a_name() -> None:
    assert {figure for _, _, figures in CASES for figure in figures} <= set(FIGURES)


def test_numbers_keep_three_digits() -> None:
    assert [number(value) for value in (None, 12345.6, 999.9, 1.234, 0.0012, 0)] == ["-", "12,346", "1,000", "1.23", "0.0012", "0"]
