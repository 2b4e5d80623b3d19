"""When a snapshot is due, whose turn it is, and when one is loaded."""

from __future__ import annotations

from dataclasses import replace

from triplicate.replica.core.snapshot_policy import (
    LONGEST_CHECK_S,
    REQUEST_CHECK_S,
    SegmentAge,
    SnapshotPeer,
    SnapshotSettings,
    SnapshotSituation,
    cut_offset,
    has_grown_due,
    is_snapshot_faster,
    is_turn,
    may_grow_due,
    pressing_reason,
    snapshot_rank,
)

SETTINGS = SnapshotSettings(log_bytes=1000, interval_s=60.0)
OFF = SnapshotSettings(log_bytes=0)
SETTLED = SnapshotSituation(
    position=500, first_offset=100, now_ms=1_000_000, wanted=None, newest_position=400, newest_time_ms=930_000, has_damaged=False
)


def test_a_snapshot_is_due_when_the_log_has_grown_and_the_newest_is_old_enough() -> None:
    assert may_grow_due(SETTLED, SETTINGS)
    assert not may_grow_due(replace(SETTLED, newest_time_ms=941_000), SETTINGS)
    assert not may_grow_due(replace(SETTLED, position=400), SETTINGS)
    assert not may_grow_due(SETTLED, OFF)
    assert may_grow_due(replace(SETTLED, newest_position=None), SETTINGS)
    assert not may_grow_due(replace(SETTLED, newest_position=None, position=0), SETTINGS)
    assert [has_grown_due(size, SETTINGS) for size in (999, 1000)] == [False, True]
    assert not has_grown_due(5000, OFF)


def test_a_clock_that_ran_ahead_does_not_stop_snapshots() -> None:
    assert may_grow_due(replace(SETTLED, newest_time_ms=9_000_000), SETTINGS)


def test_a_request_is_fulfilled_once_the_copy_has_come_so_far_even_where_snapshots_are_off() -> None:
    assert pressing_reason(replace(SETTLED, wanted=501), SETTINGS) is None
    for settings in (SETTINGS, OFF):
        assert pressing_reason(replace(SETTLED, wanted=500), settings) == "requested"


def test_damage_and_a_log_without_a_beginning_press() -> None:
    assert pressing_reason(SETTLED, SETTINGS) is None
    assert pressing_reason(replace(SETTLED, has_damaged=True), SETTINGS)
    assert pressing_reason(replace(SETTLED, newest_position=None), SETTINGS)
    assert pressing_reason(replace(SETTLED, newest_position=None, first_offset=0), SETTINGS) is None
    assert pressing_reason(replace(SETTLED, has_damaged=True), OFF) is None


def test_followers_come_first_and_the_leader_last() -> None:
    members = [SnapshotPeer("a", 500), SnapshotPeer("b", 500), SnapshotPeer("c", 490), SnapshotPeer("d", 410)]
    assert [snapshot_rank(name, 500, members, "a", 400) for name in "ab"] == [3, 0]
    assert snapshot_rank("c", 490, members, "a", 400) == 1
    assert snapshot_rank("d", 410, members, "a", 400) is None
    assert snapshot_rank("a", 500, [SnapshotPeer("a", 500)], "a", 400) == 0
    assert snapshot_rank("b", 500, [], None, 0) == 0


def test_a_leader_waits_for_a_follower_whose_report_is_a_moment_old() -> None:
    assert snapshot_rank("a", 500, [SnapshotPeer("a", 500), SnapshotPeer("b", 0)], "a", 400) == 1


def test_a_node_goes_ahead_when_those_before_it_have_had_their_time() -> None:
    assert is_turn(0, 0.0, 60.0)
    assert not is_turn(1, 59.0, 60.0)
    assert is_turn(1, 60.0, 60.0)
    assert is_turn(1, 0.0, 0.0)
    assert not is_turn(None, 1e9, 60.0)


def test_a_snapshot_is_loaded_where_the_log_is_gone_or_longer_to_read() -> None:
    assert is_snapshot_faster(50, 100, 0, 10_000)
    mib = 1024 * 1024
    assert not is_snapshot_faster(100, 100, 5 * mib, 10 * mib)
    assert is_snapshot_faster(100, 100, 5 * mib + 1, 10 * mib)
    assert not is_snapshot_faster(100, 100, mib, 10)


def test_nodes_look_often_enough() -> None:
    assert SETTINGS.check_s() == 6.0
    assert SnapshotSettings(interval_s=0).check_s() > 0
    assert SnapshotSettings(interval_s=1e9).check_s() == LONGEST_CHECK_S
    assert SETTINGS.check_s(requested=True) == REQUEST_CHECK_S


def test_the_log_keeps_what_is_young() -> None:
    hour_us = 3_600_000_000
    segments = [
        SegmentAge(0, 10 * hour_us),
        SegmentAge(100, 20 * hour_us),
        SegmentAge(200, 30 * hour_us),
        SegmentAge(300, None),
    ]
    assert cut_offset(250, segments, 0.0, 31 * hour_us) == 250
    assert cut_offset(250, segments, 3600.0, 31 * hour_us) == 200
    assert cut_offset(250, segments, 3600.0, 32 * hour_us) == 250
    assert cut_offset(150, segments, 3600.0, 31 * hour_us) == 150
    assert cut_offset(350, segments, 12 * 3600.0, 31 * hour_us) == 100
    assert cut_offset(350, segments, 1.0, 99 * hour_us) == 300
    assert cut_offset(350, [], 1.0, 99 * hour_us) == 350
