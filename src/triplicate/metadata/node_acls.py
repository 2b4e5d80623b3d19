"""The ACLs of a cluster's nodes: finding those that are open to everyone, and closing them.

A cluster that existed before its users were named has open nodes, and so has one that a process without a user has written to.
ZooKeeper checks the ACL of each node by itself, so that a closed parent protects its children's creation and deletion, and not their data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from triplicate.errors import AccessRefused, NoNode
from triplicate.metadata.core.own_paths import OWN_ROOT
from triplicate.metadata.core.paths import join
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.drivers.metadata_access import AclState
from triplicate.metadata.drivers.renewing_tree import RenewingTree
from triplicate.metadata.layout import ClusterMetadata
from triplicate.metadata.retries import retried
from triplicate.runtime import Host, TaskScope

Result = TypeVar("Result")

NODES_AT_ONCE = 50
SAMPLE_NODES = 500
"""Nodes that a sample looks at, those nearest to the roots first."""

Progress = Callable[[int], None]
"""Called with the number of nodes that were looked at since the last call."""


@runtime_checkable
class _Protected(Protocol):
    """A tree whose nodes have ACLs."""

    @property
    def closes_nodes(self) -> bool: ...

    async def acl_state(self, path: str) -> AclState: ...

    async def close_node(self, path: str) -> None: ...


@dataclass(slots=True)
class AclReport:
    """The result of a walk. Counts are nodes; those in `closed` are among the open and the other ones, and belong to the user now."""

    nodes: int = 0
    open: int = 0
    other: int = 0
    """Not open, and not the user's alone."""
    refused: int = 0
    """Closed to this process, whose user may neither read nor change their ACLs."""
    closed: int = 0
    example_open: str = ""
    example_other: str = ""
    example_refused: str = ""
    complete: bool = True
    """False: there are more nodes, which a sample does not look at."""


class NodeAcls:
    """See the module's text. Create it with `of`."""

    def __init__(self, cluster: ClusterMetadata, host: Host) -> None:
        self._cluster = cluster
        self._host = host

    @classmethod
    async def of(cls, cluster: ClusterMetadata, host: Host) -> NodeAcls | None:
        """None: the store has no ACLs, or this process creates open nodes itself."""
        tree = cluster.tree
        inner = await tree.current() if isinstance(tree, RenewingTree) else tree
        return cls(cluster, host) if isinstance(inner, _Protected) and inner.closes_nodes else None

    async def sample(self, limit: int = SAMPLE_NODES) -> AclReport:
        """Look at the nodes nearest to the roots."""
        return await self._walk(limit, change=False, progress=lambda count: None)

    async def check(self, progress: Progress = lambda count: None) -> AclReport:
        """Look at every node."""
        return await self._walk(None, change=False, progress=progress)

    async def close_all(self, progress: Progress = lambda count: None) -> AclReport:
        """Make every node the user's alone, a parent before its children.

        It may be interrupted and repeated: a node that is closed already is only read. Processes that still create open nodes below a
        parent that is closed by then are refused.
        """
        return await self._walk(None, change=True, progress=progress)

    async def _walk(self, limit: int | None, *, change: bool, progress: Progress) -> AclReport:
        report = AclReport()
        # Triplicate's own root is shared by the clusters of a store. The ancestors of the other root may belong to anybody.
        shared = [OWN_ROOT] if self._cluster.own_root.startswith(f"{OWN_ROOT}/") else []
        waiting = deque([*shared, self._cluster.root, self._cluster.own_root])
        while waiting:
            room = NODES_AT_ONCE if limit is None else min(NODES_AT_ONCE, limit - report.nodes)
            if room <= 0:
                report.complete = False
                break
            # A sample goes level by level. Everything is walked in depth, which keeps fewer paths in memory.
            take = waiting.pop if limit is None else waiting.popleft
            paths = [take() for _ in range(min(room, len(waiting)))]
            async with TaskScope("node-acls") as scope:
                tasks = [scope.spawn(self._look(path, report, change=change), name=path) for path in paths]
            for path, task in zip(paths, tasks, strict=True):
                if path not in shared:
                    waiting.extend(join(path, name) for name in task.result())
            progress(len(paths))
        return report

    async def _look(self, path: str, report: AclReport, *, change: bool) -> list[str]:
        """Count one node, close it if asked, and return the names of its children."""
        try:
            state = await self._on_tree(lambda tree: tree.acl_state(path))
            if change and state is not AclState.OURS:
                await self._on_tree(lambda tree: tree.close_node(path))
                report.closed += 1
        except NoNode:
            return []  # Deleted in the meantime, or never made: a cluster without logs has no part of Triplicate's.
        except AccessRefused:
            report.nodes += 1
            report.refused += 1
            report.example_refused = report.example_refused or path
            return []
        report.nodes += 1
        if state is AclState.OPEN:
            report.open += 1
            report.example_open = report.example_open or path
        elif state is AclState.OTHER:
            report.other += 1
            report.example_other = report.example_other or path
        try:
            names, _ = await retried(self._host, lambda: self._cluster.tree.children(path))
        except (NoNode, AccessRefused):
            return []
        return names

    async def _on_tree(self, operation: Callable[[_Protected], Awaitable[Result]]) -> Result:
        tree = self._cluster.tree

        async def on_session(session: Tree) -> Result:
            assert isinstance(session, _Protected)
            return await operation(session)

        return await retried(self._host, lambda: tree.run(on_session) if isinstance(tree, RenewingTree) else on_session(tree))
