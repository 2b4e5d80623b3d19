"""A ratio of 1.0 is on target for rates and for times, and a missing one has its reason."""

from __future__ import annotations

import pytest

from benchmarks.ledger.ratios import Run, Runs
from benchmarks.sql.targets import BEFORE, NOW, POSTGRES, SLOW, TARGETS, ratios, reasons


def runs(*found: tuple[str, str, dict[str, float]]) -> Runs:
    return Runs([Run(side, case, 1, figures) for side, case, figures in found])


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("read_16_vs_before", [(BEFORE, "read_16", {"per_s": 1000.0}), (NOW, "read_16", {"per_s": 15000.0})]),
        ("read_16_per_core", [(NOW, "read_16", {"per_core": 20000.0})]),
        ("read_16_follower_per_core", [(NOW, "read_16_follower", {"per_core": 20000.0})]),
        ("read_simple_16", [(NOW, "read_simple_16", {"per_s": 10000.0})]),
        ("read_16_vs_postgres", [(POSTGRES, "read_16", {"per_s": 30000.0}), (NOW, "read_16", {"per_s": 15000.0})]),
        ("read_1_p50", [(NOW, "read_1", {"p50_ms": 0.5})]),
        ("insert_1_p50", [(NOW, "insert_1", {"p50_ms": 0.9}), (NOW, "ledger", {"p50_ms": 0.4})]),
        ("insert_64_vs_before", [(BEFORE, "insert_64", {"per_s": 1700.0}), (NOW, "insert_64", {"per_s": 6800.0})]),
        ("insert_64_vs_ledger", [(NOW, "insert_64", {"per_s": 8000.0}), (NOW, "ledger", {"rows_per_s": 16000.0})]),
        ("insert_64_vs_postgres", [(NOW, "insert_64", {"per_s": 8000.0}), (POSTGRES, "insert_64", {"per_s": 8000.0})]),
        (
            f"insert_64_vs_postgres{SLOW}",
            [(NOW, f"insert_64{SLOW}", {"per_s": 8000.0}), (POSTGRES, f"insert_64{SLOW}", {"per_s": 8000.0})],
        ),
        ("tpcb_16_vs_before", [(BEFORE, "tpcb_16", {"per_s": 100.0}), (NOW, "tpcb_16", {"per_s": 400.0})]),
        ("processor_per_insert", [(BEFORE, "insert_64", {"cpu_us": 400.0}), (NOW, "insert_64", {"cpu_us": 100.0})]),
        ("take_over", [(BEFORE, "take_over", {"take_over_s": 0.3}), (NOW, "take_over", {"take_over_s": 0.3})]),
        ("follower_lag", [(NOW, "lag", {"most_s": 1.0})]),
        ("copy_rows", [(NOW, "copy", {"per_s": 100_000.0})]),
        ("idle_200", [(NOW, "idle_200", {"mb": 30.0})]),
        ("connections_2000", [(NOW, "connections_2000", {"served": 2000.0})]),
        ("memory_200", [(NOW, "memory_200", {"mb": 300.0})]),
        ("p99_beside_snapshot", [(NOW, "snapshot", {"alone_p99_ms": 2.0, "beside_p99_ms": 3.0})]),
        ("restart_long_log", [(NOW, "restart", {"short_s": 2.0, "long_s": 2.5})]),
        ("new_copy_long_log", [(NOW, "restart", {"short_copy_s": 4.0, "long_copy_s": 5.0})]),
        ("read_beside_scan", [(NOW, "scan", {"alone_p99_ms": 1.0, "beside_p99_ms": 2.0})]),
    ],
)
def test_what_a_target_asks_for_is_one(key: str, found: list[tuple[str, str, dict[str, float]]]) -> None:
    assert ratios(runs(*found))[key] == pytest.approx(1.0)


def test_a_rate_of_half_the_target_and_a_time_of_twice_the_target_are_half() -> None:
    found = ratios(runs((NOW, "read_simple_16", {"per_s": 5000.0}), (NOW, "read_1", {"p50_ms": 1.0})))
    assert found["read_simple_16"] == found["read_1_p50"] == pytest.approx(0.5)


def test_the_median_of_the_rounds_counts() -> None:
    rounds = Runs([Run(NOW, "read_simple_16", number, {"per_s": value}) for number, value in enumerate((1.0, 10_000.0, 90_000.0))])
    assert ratios(rounds)["read_simple_16"] == pytest.approx(1.0)


def test_a_missing_figure_has_no_ratio_and_its_reason() -> None:
    found = Runs([Run(NOW, "copy", 1, None, "this release refuses COPY"), Run(NOW, "insert_64", 1, {"per_s": 5.0})])
    assert ratios(found)["copy_rows"] is None
    assert reasons(found)["copy_rows"] == "copy of now: this release refuses COPY"
    assert reasons(found)["insert_64_vs_before"] == "insert_64 of before: not run"
    assert set(reasons(found)) == {target.key for target in TARGETS}


def test_a_target_with_a_ratio_has_no_reason() -> None:
    assert "read_1_p50" not in reasons(runs((NOW, "read_1", {"p50_ms": 0.5})))


def test_every_target_has_a_key_of_its_own_and_a_ratio_in_a_flat_object() -> None:
    assert len(ratios(runs())) == len(TARGETS)
    assert all(ratio is None for ratio in ratios(runs()).values())
