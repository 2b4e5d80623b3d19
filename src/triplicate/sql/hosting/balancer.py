"""The balancer: one elected node of the cluster that carries out the plan of `core.placement`.

It is elected by an ephemeral node, ``/triplicate/<INSTANCEID>/balancer``. The election is for economy only. Two balancers do no harm: a
change of copies is made by compare-and-set against everything that its plan was made from, and a move of a leader is a request to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from triplicate.client import Client
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import BadVersion, NodeExists, NoNode, SessionExpired, SqlError, TriplicateError
from triplicate.metadata import Watch, delete_of_session, own_paths
from triplicate.replica import (
    CopyChange,
    LeaderMove,
    ListedNode,
    PlacedNode,
    listed_nodes,
    placement_change,
    placement_version,
    plan_copies,
    plan_leaders,
    shortages,
)
from triplicate.runtime import Backoff, Host, Metrics, deadline_after, first_of, map_bounded, shielded, sleep, timeout_at
from triplicate.sql.hosting.leader_moves import move_leader
from triplicate.sql.hosting.placement_changes import StoredDatabase, stored_databases

RETRY_FIRST_S = 0.1
RETRY_LONGEST_S = 5.0
SHORTEST_PAUSE_S = 0.05
DUTY = 20
"""A pause between two rounds is at least this many times as long as the reading of the facts."""
IDLE_INTERVALS = 30
"""Longest pause while there is nothing to do, in intervals."""
BUILDS_AT_ONCE = 8
"""Copies that are being made at the same time, in the whole cluster, because others are replaced."""
MOVES_AT_ONCE = 8
MOVES_PER_ROUND = 64
MOVE_LIMIT_S = 15.0
"""Time limit of one move of a leader, in addition to the limit of its transactions."""
WITHDRAW_LIMIT_S = 3.0
PUT_OFF_S = 60.0
"""Time for which a move that failed is not tried again."""


class Balancer:
    """Stands for the election, and balances while it is elected."""

    def __init__(self, host: Host, client: Client, settings: NodeSettings, metrics: Metrics | None = None) -> None:
        self._host = host
        self._client = client
        self._tree = client.metadata.tree
        self._settings = settings
        self._metrics = _BalancerMetrics(metrics) if metrics is not None else None
        self._path = own_paths.balancer_path(client.metadata.own_root)
        self._absent_since: dict[str, float] = {}
        """When this balancer first saw that a node did not run."""
        self._unsettled: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()
        """The running nodes and the databases without a leader, as last seen."""
        self._settled_since = 0.0
        self._put_off: dict[str, float] = {}
        """Databases whose leader could not be moved, with the time until which that is not tried again."""

    async def run(self) -> None:
        """Balance whenever this node is elected, until cancelled.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        backoff = Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, self._host.entropy.stream("node.balancer"))
        try:
            while True:
                try:
                    await self._elected()
                    self._trace("node.balancer_elected")
                    await self._balance()
                except SessionExpired:
                    raise
                except TriplicateError as error:
                    self._trace("node.retry", during="placement", error=repr(error))
                    await sleep(self._host.clock, backoff.next_s())
                else:
                    backoff.reset()
        finally:
            self._show(elected=False)
            await shielded(self._withdraw())

    async def _withdraw(self) -> None:
        """Let another node be elected. When the metadata do not answer, this node's election ends with the session."""
        try:
            async with timeout_at(deadline_after(self._host.clock, WITHDRAW_LIMIT_S)):
                await delete_of_session(self._tree, self._path)
        except (TriplicateError, TimeoutError) as error:
            self._trace("node.withdraw", error=repr(error))

    def _trace(self, kind: str, **facts: object) -> None:
        self._host.trace(kind, node=self._settings.node_id, **facts)

    def _show(self, *, elected: bool) -> None:
        if self._metrics is not None:
            self._metrics.elected.set(1 if elected else 0)

    async def _elected(self) -> None:
        """Wait until the balancer's node is of this session."""
        watch = self._tree.watch(self._path)
        try:
            while True:
                try:
                    await self._tree.create(self._path, self._settings.node_id.encode(), ephemeral=True, parents=True)
                except NodeExists:
                    if await self._is_elected():
                        return
                    await watch.changed()
                else:
                    return
        finally:
            watch.close()

    async def _is_elected(self) -> bool:
        stat = await self._tree.exists(self._path)
        return stat is not None and stat.ephemeral_owner == self._tree.session_id

    async def _balance(self) -> None:
        """Balance until another node is elected."""
        self._absent_since.clear()
        self._put_off.clear()
        self._settled_since = self._host.clock.monotonic()
        root, clock, interval_s = self._client.metadata.own_root, self._host.clock, self._settings.balance_interval_s
        pause_s = interval_s
        with ExitStack() as opened:
            paths = self._path, own_paths.nodes_path(root), own_paths.placement_path(root), own_paths.databases_path(root)
            watches = [self._tree.watch(path) for path in paths]
            for watch in watches:
                opened.callback(watch.close)
            while await self._is_elected():
                self._show(elected=True)
                began_s = clock.monotonic()
                version = await placement_version(self._client)
                nodes = await listed_nodes(self._client)
                databases = await stored_databases(self._client)
                took_s = clock.monotonic() - began_s
                is_settled = await self._carry_out(version, nodes, databases)
                pause_s = min(2 * pause_s, IDLE_INTERVALS * interval_s) if is_settled else interval_s
                await sleep(clock, min(interval_s, max(SHORTEST_PAUSE_S, DUTY * took_s)))
                await _any_changed(watches, self._host, pause_s)
            self._show(elected=False)

    async def _carry_out(self, version: int, nodes: Sequence[ListedNode], databases: Sequence[StoredDatabase]) -> bool:
        """One round; returns whether nothing remains to be done."""
        placed_nodes, placed = self._placed(nodes), [one.placed for one in databases]
        if self._metrics is not None:
            self._metrics.short.set(len(shortages(placed, placed_nodes)))
        copies = self._paced(plan_copies(placed, placed_nodes, BUILDS_AT_ONCE), databases, placed_nodes)
        await self._change_copies(copies, version, databases)
        now_s = self._host.clock.monotonic()
        self._put_off = {name: until_s for name, until_s in self._put_off.items() if until_s > now_s}
        evens_out = self._is_settled(placed_nodes, databases)
        planned = plan_leaders(placed, placed_nodes, MOVES_PER_ROUND + len(self._put_off), evens_out=evens_out)
        moves = [one for one in planned if one.name not in self._put_off][:MOVES_PER_ROUND]
        await map_bounded(self._move, moves, most=MOVES_AT_ONCE, name="leaders")
        # A node that is absent becomes gone by time alone, and nothing wakes this loop then.
        return evens_out and not copies and not moves and not self._absent_since

    def _placed(self, nodes: Sequence[ListedNode]) -> list[PlacedNode]:
        now_s = self._host.clock.monotonic()
        absent = {one.name for one in nodes if not one.is_running}
        self._absent_since = {name: self._absent_since.get(name, now_s) for name in absent}
        limit_s = self._settings.absent_node_limit_s
        return [one.placed(is_gone=now_s - self._absent_since.get(one.name, now_s) >= limit_s and one.name in absent) for one in nodes]

    def _is_settled(self, nodes: Sequence[PlacedNode], databases: Sequence[StoredDatabase]) -> bool:
        """Whether no node has come or gone, and no database has lost or found a leader, for the time that the settings say."""
        now_s = self._host.clock.monotonic()
        unled = frozenset(one.placed.name for one in databases if not one.placed.leader)
        seen = frozenset(one.name for one in nodes if one.is_registered), unled
        if seen != self._unsettled:
            self._unsettled, self._settled_since = seen, now_s
        return now_s - self._settled_since >= self._settings.balance_settle_s

    def _paced(self, changes: Sequence[CopyChange], databases: Sequence[StoredDatabase], nodes: Sequence[PlacedNode]) -> list[CopyChange]:
        """The changes that may be made now: those of databases without any copy, and few of the others while copies are being made."""
        running = {one.name for one in nodes if one.is_registered}
        chosen = {one.placed.name: one.placed.placement.nodes for one in databases}
        builds = sum(bool((set(one.placed.placement.nodes) & running) - one.placed.served_on) for one in databases)
        new = [one for one in changes if not chosen[one.name]]
        others = [one for one in changes if chosen[one.name]]
        return [*new, *others[: max(0, BUILDS_AT_ONCE - builds)]]

    async def _change_copies(self, changes: Sequence[CopyChange], version: int, databases: Sequence[StoredDatabase]) -> None:
        """Write the new nodes of databases, unless the placement has changed since the plan was made."""
        stored = {one.placed.name: one for one in databases}
        for change in changes:
            one = stored[change.name]
            before = one.placed.placement
            changed = one.entry.change(replace(one.entry.info, placement=replace(before, nodes=change.nodes)))
            try:
                await self._tree.multi([placement_change(self._client, version), *changed])
            except (BadVersion, NoNode, NodeExists):
                self._trace("node.placement_outdated", database=change.name)
                return  # The change has woken this loop, which plans again.
            version += 1
            self._trace("node.placement_changed", database=change.name, before=before.nodes, nodes=change.nodes)
            if self._metrics is not None:
                self._metrics.copies.inc()

    async def _move(self, move: LeaderMove) -> None:
        limit_s = self._settings.handover_limit_s + MOVE_LIMIT_S
        try:
            await move_leader(self._client, move.name, move.target, limit_s)
        except SqlError as error:
            self._put_off[move.name] = self._host.clock.monotonic() + PUT_OFF_S
            self._trace("node.leader_not_moved", database=move.name, source=move.source, to=move.target, error=str(error))
            return
        self._trace("node.leader_moved", database=move.name, source=move.source, to=move.target)
        if self._metrics is not None:
            self._metrics.leaders.inc()


async def _any_changed(watches: Sequence[Watch], host: Host, limit_s: float) -> None:
    """Return when one of several watches wakes, or after a time in seconds."""
    await first_of([*(_changed(watch) for watch in watches), sleep(host.clock, limit_s)], name="changes")


async def _changed(watch: Watch) -> None:
    await watch.changed()


class _BalancerMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self.elected = metrics.gauge("triplicate_balancer_elected", "1 while this node carries out the placement of databases.")
        short = "Databases for which too few nodes are able to have copies, as the elected balancer sees it."
        self.short = metrics.gauge("triplicate_balancer_databases_short", short)
        self.copies = metrics.counter("triplicate_balancer_copy_changes_total", "Databases for whose copies other nodes were chosen.")
        self.leaders = metrics.counter("triplicate_balancer_leader_moves_total", "Leaders that were moved to another node.")
