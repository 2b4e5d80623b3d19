"""Placement: which nodes have copies of each replica, that is of each database or store, and which of them leads it. Pure.

The load of a node is the sum of the weights of its replicas, divided by its own weight. A plan repairs first: it replaces copies on nodes
that are leaving or gone, and moves leaders off nodes that may not lead. Then it evens out loads, and makes only changes after which the
fuller node of the two is less full than before, so that plans end. The same facts always give the same plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

WEIGHT_MAX = 1_000_000.0
COPIES_MAX = 100
TOLERANCE = 0.05
"""Loads that differ by at most this share of the average load are even."""
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Placement:
    """The nodes of one database."""

    copies: int | None = None
    """Expected number of copies that may lead. None: every node has one."""
    nodes: tuple[str, ...] = ()
    """The nodes that were chosen for these copies, sorted. Empty if every node has a copy."""
    readers: tuple[str, ...] = ()
    """Further nodes with copies that never lead, sorted."""
    weight: float = 1.0
    """The load of this database beside others."""
    preferred: str = ""
    """The node that leads it while it can; empty for none."""

    def is_chosen(self, node: str) -> bool:
        """Whether a node may have a copy that leads."""
        return node not in self.readers and (self.copies is None or node in self.nodes)

    def assigns(self, node: str, *, is_draining: bool) -> bool:
        """Whether a node is to have a copy of any kind.

        A draining node gives up its copies where nobody chooses another node: those that every node has, and those for reading.
        """
        if node in self.readers or self.copies is None:
            return not is_draining
        return node in self.nodes


EVERYWHERE = Placement()


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """One node."""

    name: str
    weight: float = 1.0
    is_draining: bool = False
    is_registered: bool = True
    """Whether it runs, and its release knows placements."""
    is_gone: bool = False
    """Whether it has been absent for so long that its copies are replaced."""

    @property
    def is_able(self) -> bool:
        """Whether it can be given copies and leaders."""
        return self.is_registered and not self.is_draining

    @property
    def keeps(self) -> bool:
        """Whether the copies that it has stay."""
        return not self.is_draining and not self.is_gone


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """One database with its present state."""

    name: str
    placement: Placement = EVERYWHERE
    leader: str = ""
    """The node that leads it; empty if there is none."""
    served_on: frozenset[str] = frozenset()
    """The nodes whose copies can be used now."""


@dataclass(frozen=True, slots=True)
class CopyChange:
    """New nodes for the copies of a database."""

    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeaderMove:
    """A leader that should move to another node."""

    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Shortage:
    """A database for which too few nodes are able to have copies."""

    name: str
    expected: int
    able: int


class _Loads:
    """The loads of nodes."""

    def __init__(self, nodes: Iterable[PlacedNode]) -> None:
        self._weights = {node.name: node.weight for node in nodes}
        self._sums = dict.fromkeys(self._weights, 0.0)

    def add(self, node: str, weight: float) -> None:
        if node in self._sums:
            self._sums[node] += weight

    def move(self, source: str, target: str, weight: float) -> None:
        self.add(source, -weight)
        self.add(target, weight)

    def of(self, node: str, more: float = 0.0) -> float:
        """The load of a node, with `more` weight on it."""
        return (self._sums[node] + more) / self._weights[node]

    def emptiest(self, nodes: Iterable[str], more: float) -> str:
        """The node that has the least load with `more` weight on it; of equals, the first by name."""
        return min(nodes, key=lambda node: (self.of(node, more), node))

    def pairs(self, nodes: Sequence[str], tolerance: float) -> Iterable[tuple[str, str]]:
        """Pairs of a fuller and an emptier node whose loads are not even, the most different first."""
        if not nodes:
            return
        ordered = sorted(nodes, key=lambda node: (self.of(node), node))
        even = tolerance * sum(self.of(node) for node in ordered) / len(ordered)
        found = [(self.of(source) - self.of(target), source, target) for source in reversed(ordered) for target in ordered]
        for gap, source, target in sorted(found, key=lambda one: (-one[0], one[1], one[2])):
            if gap <= even + _EPSILON:
                return
            yield source, target


def plan_copies(databases: Sequence[PlacedReplica], nodes: Sequence[PlacedNode], most: int) -> list[CopyChange]:
    """The changes of chosen nodes that give each database its expected copies on nodes that stay, and that even out the nodes.

    Args:
        most: bound of the number of changes that even out the nodes.

    Returns:
        Changes of different databases: all repairs, and then those that even out. Databases with copies on every node never change.
    """
    known = {node.name: node for node in nodes}
    placed = [one for one in sorted(databases, key=lambda one: one.name) if one.placement.copies is not None]
    kept = {one.name: {node for node in one.placement.nodes if node in known and one.placement.is_chosen(node)} for one in placed}
    loads = _Loads(nodes)
    for one in placed:
        for node in kept[one.name]:
            if known[node].keeps:
                loads.add(node, one.placement.weight)
    changes: dict[str, CopyChange] = {}
    for one in placed:
        chosen = _repaired(one, kept[one.name], known, loads)
        if chosen != set(one.placement.nodes):
            changes[one.name] = CopyChange(one.name, tuple(sorted(chosen)))
        kept[one.name] = chosen
    _even_out_copies([one for one in placed if one.name not in changes], kept, known, loads, changes, len(changes) + most)
    return list(changes.values())


def _repaired(database: PlacedReplica, former: Collection[str], known: Mapping[str, PlacedNode], loads: _Loads) -> set[str]:
    """The nodes for the copies of one database. `loads` follows."""
    placement = database.placement
    expected = placement.copies or 0
    chosen = {node for node in former if known[node].keeps}
    while len(chosen) > expected:
        # The leader's copy is the last to go.
        surplus = max(chosen, key=lambda node: (node != database.leader, loads.of(node), node))
        chosen.discard(surplus)
        loads.add(surplus, -placement.weight)
    able = [node.name for node in known.values() if node.is_able and node.name not in placement.readers]
    while len(chosen) < expected and (others := [node for node in able if node not in chosen]):
        node = loads.emptiest(others, placement.weight)
        chosen.add(node)
        loads.add(node, placement.weight)
    # Where too few nodes are able, copies on nodes that are leaving or absent stay chosen.
    for node in sorted(former, key=lambda node: (known[node].is_gone, node)):
        if len(chosen) < expected:
            chosen.add(node)
    return chosen


def _even_out_copies(
    databases: Sequence[PlacedReplica],
    kept: dict[str, set[str]],
    known: Mapping[str, PlacedNode],
    loads: _Loads,
    changes: dict[str, CopyChange],
    most: int,
) -> None:
    """Move single copies from full nodes to empty ones. `kept`, `loads` and `changes` follow."""
    names = [node.name for node in known.values() if node.is_able]
    while len(changes) < most:
        for source, target in loads.pairs(names, TOLERANCE):
            movable = [
                one
                for one in databases
                if one.name not in changes
                and source in kept[one.name]
                and target not in kept[one.name]
                and target not in one.placement.readers
                and loads.of(target, one.placement.weight) < loads.of(source) - _EPSILON
            ]
            if movable:
                one = min(movable, key=lambda one: (one.leader == source, _peak(loads, source, target, one.placement.weight), one.name))
                kept[one.name] = kept[one.name] - {source} | {target}
                loads.move(source, target, one.placement.weight)
                changes[one.name] = CopyChange(one.name, tuple(sorted(kept[one.name])))
                break
        else:
            return


def _peak(loads: _Loads, source: str, target: str, weight: float) -> float:
    """The larger load of two nodes after the move of a weight."""
    return max(loads.of(source, -weight), loads.of(target, weight))


def plan_leaders(databases: Sequence[PlacedReplica], nodes: Sequence[PlacedNode], most: int, *, evens_out: bool = True) -> list[LeaderMove]:
    """The moves that take leaders off nodes that may not lead, give databases their preferred leaders, and even out the nodes.

    Args:
        most: bound of the number of moves. Moves off nodes that may not lead come first.
        evens_out: whether to even out the nodes.
    """
    known = {node.name: node for node in nodes}
    led = [one for one in sorted(databases, key=lambda one: one.name) if one.leader]
    able = {one.name: leader_nodes(one, known) for one in led}
    loads = _Loads(nodes)
    for one in led:
        loads.add(one.leader, one.placement.weight)
    moves: dict[str, LeaderMove] = {}
    for one in led:
        target = _required_leader(one, able[one.name], known, loads)
        if target and len(moves) < most:
            moves[one.name] = LeaderMove(one.name, one.leader, target)
            loads.move(one.leader, target, one.placement.weight)
    if evens_out:
        free = [one for one in led if one.name not in moves and one.leader in able[one.name] and one.placement.preferred != one.leader]
        _even_out_leaders(free, able, known, loads, moves, most)
    return list(moves.values())


def _even_out_leaders(
    databases: Sequence[PlacedReplica],
    able: Mapping[str, Collection[str]],
    known: Mapping[str, PlacedNode],
    loads: _Loads,
    moves: dict[str, LeaderMove],
    most: int,
) -> None:
    """Move single leaders from full nodes to empty ones. `loads` and `moves` follow."""
    names = [node.name for node in known.values() if node.is_able]
    while len(moves) < most:
        for source, target in loads.pairs(names, TOLERANCE):
            movable = [
                one
                for one in databases
                if one.leader == source
                and one.name not in moves
                and target in able[one.name]
                and loads.of(target, one.placement.weight) < loads.of(source) - _EPSILON
            ]
            if movable:
                one = min(movable, key=lambda one: (_peak(loads, source, target, one.placement.weight), one.name))
                moves[one.name] = LeaderMove(one.name, source, target)
                loads.move(source, target, one.placement.weight)
                break
        else:
            return


def _required_leader(database: PlacedReplica, able: Collection[str], nodes: Mapping[str, PlacedNode], loads: _Loads) -> str:
    """The node that must lead a database instead of the one that does; empty if it may go on.

    A leader that does not run any more is replaced by the election, and one of an earlier release hands over to nobody: both are let be.
    """
    preferred, leader = database.placement.preferred, database.leader
    if preferred in able:
        return preferred if preferred != leader else ""
    is_draining = leader in nodes and nodes[leader].is_draining
    others = [node for node in able if node != leader]
    if not others or (database.placement.is_chosen(leader) and not is_draining):
        return ""
    return loads.emptiest(others, database.placement.weight)


def leader_nodes(database: PlacedReplica, nodes: Mapping[str, PlacedNode]) -> tuple[str, ...]:
    """The nodes that could lead a database now, by name: able, chosen, and with a copy that can be used."""
    return tuple(
        sorted(node for node in database.served_on if database.placement.is_chosen(node) and node in nodes and nodes[node].is_able)
    )


def best_leader(database: PlacedReplica, databases: Sequence[PlacedReplica], nodes: Sequence[PlacedNode]) -> str:
    """The node with the least load to which the leader of a database could move; empty if there is none."""
    known = {node.name: node for node in nodes}
    loads = _Loads(nodes)
    for one in databases:
        loads.add(one.leader, one.placement.weight)
    others = [node for node in leader_nodes(database, known) if node != database.leader]
    return loads.emptiest(others, database.placement.weight) if others else ""


def shortages(databases: Sequence[PlacedReplica], nodes: Sequence[PlacedNode]) -> list[Shortage]:
    """The databases for which fewer nodes are able to have copies than are expected, by name. A copy on every node means one at least."""
    found = []
    for one in sorted(databases, key=lambda one: one.name):
        expected = one.placement.copies or 1
        able = sum(node.is_able and node.name not in one.placement.readers for node in nodes)
        if able < expected:
            found.append(Shortage(one.name, expected, able))
    return found


def expected_nodes(placement: Placement, nodes: Sequence[PlacedNode]) -> frozenset[str]:
    """The nodes that are to have copies that may lead."""
    if placement.copies is not None:
        return frozenset(placement.nodes)
    return frozenset(node.name for node in nodes if node.is_able and placement.is_chosen(node.name))


def may_leave(node: str, expected: Collection[str], positions: Mapping[str, int], position: int) -> bool:
    """Whether a node may delete its copy: it is not expected there, and each expected copy has reached the copy's position.

    Args:
        expected: the nodes that are to have copies that may lead.
        positions: of the copies that can be used now, by node.
        position: of the copy that would be deleted, at the time when it was no longer expected. Later records come from a leader, whose
            copy is one of the others.
    """
    others = [one for one in expected if one != node]
    return node not in expected and bool(others) and all(positions.get(one, -1) >= position for one in others)
