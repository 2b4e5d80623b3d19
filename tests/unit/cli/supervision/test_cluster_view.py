"""`up` reports each change of its cluster once."""

from __future__ import annotations

from typing import Any

from triplicate.cli.server_commands.up_command import ready_line
from triplicate.cli.supervision.cluster_view import LEADERLESS_S, ClusterView


def bookies(**writable: bool) -> dict[str, Any]:
    return {name: {"ready": True, "writable": value} for name, value in writable.items()}


def nodes(**roles: str) -> dict[str, Any]:
    return {name: {"databases": {"shop": {"role": role}}} for name, role in roles.items()}


def test_a_bookie_that_turns_read_only_and_writable_again_is_reported_once_each() -> None:
    view = ClusterView()
    assert view.observe(0, bookies(a=True, b=True)) == []
    assert view.observe(1, bookies(a=True, b=False)) == ["b is read-only: it accepts no new entries, for want of disk space or by request"]
    assert view.read_only == ["b"]
    assert view.observe(2, bookies(a=True, b=False)) == []
    assert view.observe(3, bookies(a=True, b=True)) == ["b is writable again"]
    assert view.read_only == []


def test_a_bookie_that_is_read_only_from_the_beginning_is_reported() -> None:
    view = ClusterView()
    assert len(view.observe(0, bookies(a=False))) == 1
    assert view.read_only == ["a"]


def test_a_bookie_that_ended_counts_for_nothing() -> None:
    view = ClusterView()
    view.observe(0, bookies(a=False))
    assert view.observe(1, {}) == []
    assert view.read_only == []
    assert len(view.observe(2, bookies(a=False))) == 1


def test_a_new_leader_is_reported() -> None:
    view = ClusterView()
    assert view.observe(0, nodes(n1="leader", n2="follower")) == ["n1 leads database shop"]
    assert view.observe(1, nodes(n1="leader", n2="follower")) == []
    assert view.observe(2, nodes(n1="follower", n2="leader")) == ["n2 leads database shop"]


def test_a_leader_that_does_not_know_of_its_successor_is_not_reported_in_turn_with_it() -> None:
    view = ClusterView()
    view.observe(0, nodes(n1="leader", n2="follower"))
    assert view.observe(1, nodes(n1="leader", n2="leader")) == []
    assert view.observe(2, nodes(n1="follower", n2="leader")) == ["n2 leads database shop"]


def test_a_database_long_without_a_leader_is_reported_and_so_is_its_next_leader() -> None:
    view = ClusterView()
    view.observe(0, nodes(n1="leader", n2="follower"))
    assert view.observe(1, nodes(n2="candidate")) == []
    assert view.observe(1 + LEADERLESS_S / 2, nodes(n2="follower")) == []
    (line,) = view.observe(1 + LEADERLESS_S, nodes(n2="candidate"))
    assert line.startswith("database shop has had no leader for 5 s")
    assert view.observe(2 + LEADERLESS_S, nodes(n2="follower")) == []
    assert view.observe(3 + LEADERLESS_S, nodes(n2="follower", n1="leader")) == ["n1 leads database shop"]


def test_a_short_take_over_is_not_reported_as_a_loss() -> None:
    view = ClusterView()
    view.observe(0, nodes(n1="leader"))
    assert view.observe(4, nodes(n1="candidate")) == []
    assert view.observe(6, nodes(n1="leader")) == []
    assert view.observe(10, nodes(n1="follower")) == [], "the time without a leader is counted from its own beginning"


def test_a_diverged_copy_is_reported_once() -> None:
    view = ClusterView()
    lines = view.observe(0, nodes(n1="leader", n2="diverged"))
    assert lines[0].startswith("the copy of database shop on n2 has diverged")
    assert view.observe(1, nodes(n1="leader", n2="diverged")) == []


def test_the_last_line_of_a_start_names_what_is_missing_and_read_only_bookies() -> None:
    assert ready_line([], [], 4) == "ready; Ctrl-C ends everything"
    assert ready_line([], ["bookie-2", "node-1"], 4) == "ready; bookie-2, node-1 did not start; Ctrl-C ends everything"
    assert ready_line(["bookie-2", "bookie-4"], [], 4) == (
        "ready; 2 of 4 bookies are read-only (bookie-2, bookie-4): they accept no new entries, for want of disk space or by request; "
        "Ctrl-C ends everything"
    )
