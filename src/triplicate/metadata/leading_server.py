"""Whether this process shares its machine with the leader of the metadata service.

A machine that takes both that leader and the leader of a database with it costs the sum of two elections: the second begins when the first
is over. Of several nodes that could lead, one on another machine is therefore the better choice.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from triplicate.metadata.core.tree import Tree
from triplicate.metadata.drivers.renewing_tree import RenewingTree


@runtime_checkable
class _Elected(Protocol):
    """A tree whose servers elect a leader."""

    async def is_beside_leader(self) -> bool: ...


async def is_beside_leading_server(tree: Tree) -> bool:
    """Whether the leader of the metadata service runs on this machine. False if that is unknown, or the service has no leader.

    Raises:
        ConnectionLost, SessionExpired: as any operation of the tree.
    """
    present = await tree.current() if isinstance(tree, RenewingTree) else tree
    return isinstance(present, _Elected) and await present.is_beside_leader()
