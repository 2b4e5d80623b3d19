"""The entries of replicas in the metadata: listing them, making one with its log, and deleting what is beneath one."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, NodeExists, NoNode
from triplicate.log import Logs, Purpose
from triplicate.metadata import DeleteNode, IdentifiedNode, Tree, TreeOperation, create_identified

LONGEST_LEASE_S = 60.0


def check_lease(lease_s: float) -> float:
    """Raises ArgumentError if it is no lease of a replica, in seconds."""
    if not 0 <= lease_s <= LONGEST_LEASE_S:
        raise ArgumentError(f"a lease has 0 to {LONGEST_LEASE_S:g} s, not {lease_s:g}")
    return lease_s


async def names_beneath(tree: Tree, path: str) -> list[str]:
    """The names of the nodes beneath a node, sorted; none if it does not exist."""
    try:
        names, _ = await tree.children(path)
    except NoNode:
        return []
    return sorted(names)


async def deletions_of(tree: Tree, entry: IdentifiedNode) -> list[TreeOperation]:
    """Deletions of an entry with everything beneath it, children before their parents.

    They fail if it has changed since it was read. The nodes beneath may be of another entry by now, so the checks come first.
    """
    return [*entry.checks, *await _deletions_beneath(tree, entry.path), DeleteNode(entry.path, entry.version)]


async def _deletions_beneath(tree: Tree, path: str) -> list[TreeOperation]:
    operations: list[TreeOperation] = []
    for name in await names_beneath(tree, path):
        operations += [*await _deletions_beneath(tree, f"{path}/{name}"), DeleteNode(f"{path}/{name}")]
    return operations


async def create_with_log(
    tree: Tree,
    path: str,
    content: bytes,
    is_own: Callable[[bytes], bool],
    logs: Logs,
    log: str,
    settings: LogSettings | None,
    *,
    purpose: Purpose,
    key_id: str,
) -> bool:
    """Create the log of a replica, and then its entry.

    Args:
        content: of the entry. is_own: whether the content of an entry is of this replica.
        key_id: the key under which its log is encrypted; empty for none.

    Returns:
        False if the name is in use. There is no log then.

    Raises:
        ArgumentError: `settings` has retention, which snapshots decide. NotEnoughBookies: its log could store nothing now.
    """
    if await tree.exists(path) is not None:
        return False
    logs = logs.acting_for(purpose)
    # Nobody could lead a replica whose log stores nothing.
    await logs.require_bookies(log, settings or LogSettings())
    await logs.create(log, settings, purpose=purpose, key_id=key_id)
    try:
        await create_identified(tree, path, content, logs.client.host)
    except NodeExists:
        data, _ = await tree.get(path)
        if data and is_own(data):
            return True  # The creation was applied, the connection was lost, and the metadata driver repeated it.
        await logs.delete(log)
        return False
    return True
