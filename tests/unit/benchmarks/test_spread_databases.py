"""The cost of a copy to its node is the mean over all nodes, and leaders are even when no node leads a tenth more than another."""

from __future__ import annotations

import pytest

from benchmarks.spread_databases import are_even, are_served, for_each_copy
from triplicate.sql import PlacedReplica


def figures(rss_mib: float, open_files: int, idle: float) -> dict[str, float]:
    return {"rss_mib": rss_mib, "open_files": open_files, "idle_cpu_percent": idle, "threads": 4}


def test_the_cost_of_a_copy_is_what_all_nodes_have_more_by_all_copies() -> None:
    empty = {"node-1": figures(60, 20, 1), "node-2": figures(60, 20, 1), "bookie-1": figures(50, 10, 1)}
    full = {"node-1": figures(90, 120, 2), "node-2": figures(72, 80, 1), "bookie-1": figures(80, 90, 1)}
    found = for_each_copy(empty, full, {"node-1": 20, "node-2": 10})
    assert found == pytest.approx({"rss_mib": 1.4, "open_files": 5.333, "idle_cpu_percent": 0.033})


def led(*leaders: str) -> list[PlacedReplica]:
    return [PlacedReplica(f"db{number}", leader=leader, served_on=frozenset({"node-1", "node-2"})) for number, leader in enumerate(leaders)]


def test_leaders_are_even_when_no_node_leads_many_more_than_another() -> None:
    check = are_even(("node-1", "node-2"))
    assert check(led("node-1", "node-2", "node-1"))
    assert not check(led("node-1", "node-1", "node-1", "node-2"))
    assert not check(led("node-1", "node-2", "")), "one has no leader"


def test_databases_are_served_when_each_has_a_leader_and_its_copies() -> None:
    assert are_served(2, 2)(led("node-1", "node-2"))
    assert not are_served(2, 3)(led("node-1", "node-2"))
    assert not are_served(3, 2)(led("node-1", "node-2"))
    assert not are_served(2, 2)(led("node-1", ""))
