"""Plans of placement over random clusters."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from triplicate.replica.core.placement import (
    PlacedNode,
    PlacedReplica,
    Placement,
    may_leave,
    plan_copies,
    plan_leaders,
    shortages,
)

NAMES = [f"n{number}" for number in range(1, 7)]
MANY = 1000
FEW = settings(max_examples=30)
WEIGHTS = st.sampled_from([0.5, 1.0, 1.0, 1.0, 2.0, 5.0])


@st.composite
def node_lists(draw: st.DrawFn) -> list[PlacedNode]:
    count = draw(st.integers(1, len(NAMES)))
    nodes = []
    for name in NAMES[:count]:
        registered = draw(st.booleans() | st.just(True))
        gone = not registered and draw(st.booleans())
        nodes.append(PlacedNode(name, draw(WEIGHTS), draw(st.sampled_from([False, False, False, True])), registered, gone))
    return nodes


@st.composite
def databases_on(draw: st.DrawFn, nodes: list[PlacedNode]) -> list[PlacedReplica]:
    names = [node.name for node in nodes]
    found = []
    for number in range(draw(st.integers(0, 12))):
        copies = draw(st.none() | st.integers(1, 4))
        readers = draw(st.sets(st.sampled_from(names), max_size=1))
        chosen = draw(st.sets(st.sampled_from(NAMES), max_size=4)) - readers if copies is not None else set()
        served = draw(st.sets(st.sampled_from(names)))
        leader = draw(st.sampled_from([*sorted(served), ""]))
        placement = Placement(copies, tuple(sorted(chosen)), tuple(sorted(readers)), draw(WEIGHTS), draw(st.sampled_from(["", "", *names])))
        found.append(PlacedReplica(f"db{number:02}", placement, leader, frozenset(served)))
    return found


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[PlacedReplica], list[PlacedNode]]:
    nodes = draw(node_lists())
    return draw(databases_on(nodes)), nodes


def takes(node: PlacedNode) -> bool:
    """Whether a node can be given copies and leaders."""
    return node.is_registered and not node.is_draining


def with_copies(databases: list[PlacedReplica], nodes: list[PlacedNode]) -> list[PlacedReplica]:
    """The databases after all plans of copies were carried out."""
    for _ in range(100):
        changes = {change.name: change.nodes for change in plan_copies(databases, nodes, MANY)}
        if not changes:
            return databases
        databases = [
            replace(one, placement=replace(one.placement, nodes=changes[one.name])) if one.name in changes else one for one in databases
        ]
    raise AssertionError("plans of copies do not end")


def with_leaders(databases: list[PlacedReplica], nodes: list[PlacedNode]) -> list[PlacedReplica]:
    """The databases after all plans of leaders were carried out."""
    for _ in range(100):
        moves = {move.name: move for move in plan_leaders(databases, nodes, MANY)}
        if not moves:
            return databases
        assert all(one.leader == moves[one.name].source for one in databases if one.name in moves)
        databases = [replace(one, leader=moves[one.name].target) if one.name in moves else one for one in databases]
    raise AssertionError("plans of leaders do not end")


@FEW
@given(clusters())
def test_each_database_gets_its_copies_on_nodes_that_stay(cluster: tuple[list[PlacedReplica], list[PlacedNode]]) -> None:
    databases, nodes = cluster
    known = {node.name: node for node in nodes}
    short = {one.name for one in shortages(databases, nodes)}
    for before, after in zip(databases, with_copies(databases, nodes), strict=True):
        placement = after.placement
        if placement.copies is None:
            assert after == before
            continue
        assert not set(placement.nodes) & set(placement.readers)
        assert set(placement.nodes) <= set(known), "a node that was removed has no copies"
        assert len(placement.nodes) <= placement.copies
        if after.name not in short:
            assert len(placement.nodes) == placement.copies
            assert not any(known[node].is_draining or known[node].is_gone for node in placement.nodes)
        new = set(placement.nodes) - set(before.placement.nodes)
        assert all(takes(known[node]) for node in new)


@FEW
@given(clusters())
def test_plans_do_not_depend_on_the_order_of_the_facts(cluster: tuple[list[PlacedReplica], list[PlacedNode]]) -> None:
    databases, nodes = cluster
    assert plan_copies(databases, nodes, MANY) == plan_copies(databases[::-1], nodes[::-1], MANY)
    assert plan_leaders(databases, nodes, MANY) == plan_leaders(databases[::-1], nodes[::-1], MANY)


@FEW
@given(clusters(), st.integers(0, 5))
def test_plans_keep_their_bound(cluster: tuple[list[PlacedReplica], list[PlacedNode]], most: int) -> None:
    databases, nodes = cluster
    repairs = plan_copies(databases, nodes, 0)
    changes = plan_copies(databases, nodes, most)
    assert changes[: len(repairs)] == repairs
    assert len(changes) <= len(repairs) + most
    assert len(plan_leaders(databases, nodes, most)) <= most


@FEW
@given(clusters())
def test_leaders_move_to_copies_that_may_lead_and_stay_where_all_is_well(cluster: tuple[list[PlacedReplica], list[PlacedNode]]) -> None:
    databases, nodes = cluster
    known = {node.name: node for node in nodes}
    for before, after in zip(databases, with_leaders(databases, nodes), strict=True):
        able = [name for name in before.served_on if before.placement.is_chosen(name) and takes(known[name])]
        if not before.leader or not able:
            assert after.leader == before.leader
            continue
        may_go_on = before.placement.is_chosen(before.leader) and not (before.leader in known and known[before.leader].is_draining)
        assert after.leader in able or (after.leader == before.leader and may_go_on), "it leads although another should"
        if before.placement.preferred in able:
            assert after.leader == before.placement.preferred


@FEW
@given(st.integers(2, 6), st.integers(0, 40))
def test_leaders_of_equal_databases_are_even_after_a_restart(count: int, databases: int) -> None:
    nodes = [PlacedNode(name) for name in NAMES[:count]]
    everywhere = frozenset(node.name for node in nodes)
    found = with_leaders([PlacedReplica(f"db{number:02}", leader="n1", served_on=everywhere) for number in range(databases)], nodes)
    counts = [sum(one.leader == node.name for one in found) for node in nodes]
    assert max(counts) - min(counts) <= 1


@FEW
@given(st.integers(2, 5), st.integers(1, 30))
def test_a_node_that_joins_gets_its_share_and_nothing_else_moves(count: int, databases: int) -> None:
    before = [PlacedNode(name) for name in NAMES[:count]]
    placed = with_copies([PlacedReplica(f"db{number:02}", Placement(copies=2)) for number in range(databases)], before)
    after = with_copies(placed, [*before, PlacedNode("new")])
    pairs = [(set(one.placement.nodes), set(two.placement.nodes)) for one, two in zip(placed, after, strict=True)]
    moved = [two - one for one, two in pairs if one != two]
    assert all(new == {"new"} for new in moved)
    share = 2 * databases / (count + 1)
    assert len(moved) <= share + 1


@FEW
@given(st.integers(3, 6), st.integers(1, 20))
def test_a_drain_changes_the_databases_of_that_node_only(count: int, databases: int) -> None:
    nodes = [PlacedNode(name) for name in NAMES[:count]]
    placed = with_copies([PlacedReplica(f"db{number:02}", Placement(copies=2)) for number in range(databases)], nodes)
    drained = [replace(nodes[0], is_draining=True), *nodes[1:]]
    changes = plan_copies(placed, drained, MANY)
    had = {one.name for one in placed if "n1" in one.placement.nodes}
    assert {change.name for change in changes} >= had
    assert all("n1" not in change.nodes for change in changes)


@FEW
@given(st.sets(st.sampled_from(NAMES)), st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)), st.integers(0, 3))
def test_no_copy_leaves_before_all_expected_ones_have_reached_it(expected: set[str], positions: dict[str, int], position: int) -> None:
    if may_leave("n1", expected, positions, position):
        assert expected
        assert "n1" not in expected
        assert all(positions[name] >= position for name in expected)
