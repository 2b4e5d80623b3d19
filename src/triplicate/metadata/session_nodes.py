"""Changes that rely on an ephemeral node of this process: they are made in the session that has made the node, or not at all.

`RenewingTree` repeats an operation that meets an expired session on the next session. The ephemeral node is gone then, and another process
may have made one at its path. Ephemeral nodes have version 0, so a version does not distinguish the two.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import BadVersion, NoNode
from triplicate.metadata.core.tree import DeleteNode, Tree, TreeOperation
from triplicate.metadata.drivers.renewing_tree import RenewingTree


async def multi_in_session(tree: Tree, session_id: int, operations: Sequence[TreeOperation]) -> None:
    """Apply all operations in one session, or none.

    Raises:
        NoNode: the session is over, and with it its ephemeral nodes. Otherwise as `Tree.multi`.
    """
    if isinstance(tree, RenewingTree):
        await tree.run_in(session_id, lambda session: session.multi(operations))
    elif tree.session_id == session_id:
        await tree.multi(operations)
    else:
        raise NoNode(f"session {session_id} is over, and its ephemeral nodes are gone")


async def delete_of_session(tree: Tree, path: str, session_id: int | None = None) -> None:
    """Delete an ephemeral node if a session of this process has made it.

    Args:
        session_id: of the session; None for the present one.
    """
    owner = tree.session_id if session_id is None else session_id
    stat = await tree.exists(path)
    if stat is None or stat.ephemeral_owner != owner:
        return
    try:
        await multi_in_session(tree, owner, [DeleteNode(path, stat.version)])
    except (NoNode, BadVersion):
        return
