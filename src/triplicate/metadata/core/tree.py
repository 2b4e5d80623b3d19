"""The metadata tree: an interface with the part of ZooKeeper's semantics that the cluster layout needs.

The memory driver defines the semantics and serves the simulator, the SQLite driver serves one machine, and ZooKeeper serves several
machines. One contract suite runs on all drivers. Paths are absolute, '/'-separated, without a trailing slash; data is at most 1 MB.

Outcomes: `ConnectionLost` means that the operation may or may not have been applied. The caller must read again and decide.
`SessionExpired` means that this session's ephemeral nodes are gone and the tree object is finished; a new one must be opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ANY_VERSION = -1

SESSION_TIMEOUT_S = 10.0
"""Default time without a message after which a store expires a session."""
SESSION_NOTICED_S = 5.0
"""Upper bound of the delay until other processes notice an expired session."""


@dataclass(frozen=True, slots=True)
class Stat:
    """The status of a node, as ZooKeeper's `Stat`."""

    version: int
    """Number of changes of the data; 0 after creation."""
    cversion: int
    """Number of changes of the list of children."""
    ctime_ms: int
    mtime_ms: int
    ephemeral_owner: int
    """Id of the session that owns an ephemeral node; 0 for a persistent node."""


@dataclass(frozen=True, slots=True)
class CreateNode:
    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class DeleteNode:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Succeeds when the node exists at this version."""

    path: str
    version: int = ANY_VERSION


TreeOperation = CreateNode | SetData | DeleteNode | CheckVersion


class Watch(Protocol):
    """A level-triggered watch on one path. It wakes when the node or its children may have changed.

    The watch is armed when it is created. Use it in this order: create the watch, read, await `changed`, read again. No change is lost, but
    spurious wake-ups are possible. It also wakes after `ConnectionLost` and after a reconnect.
    """

    async def changed(self) -> None:
        """Return when something may have changed since the watch was made or since the last return.

        Raises:
            SessionExpired: the tree is finished.
        """

    def close(self) -> None:
        """Stop watching. Idempotent."""


class Tree(Protocol):
    """One session with a metadata store. All methods may raise `ConnectionLost` and `SessionExpired`."""

    @property
    def session_id(self) -> int:
        """Id of the session, never zero. `Stat.ephemeral_owner` has this value for the session's ephemeral nodes."""

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> str:
        """Create a node and return its path.

        Args:
            sequential: append the parent's counter as ten decimal digits. The counter counts creations of children and never decreases
                during the parent's life.
            parents: create missing parents, persistent and empty.

        Raises:
            NodeExists: the node exists. NoNode: the parent does not exist.
        """

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return the data and the status of a node. Raises NoNode."""

    async def exists(self, path: str) -> Stat | None:
        """Return the status of a node, or None if it does not exist."""

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data if the version matches. Raises NoNode, BadVersion."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete the node if the version matches. Raises NoNode, BadVersion, NotEmpty."""

    async def children(self, path: str) -> tuple[list[str], Stat]:
        """Return the names of the children, sorted, and the node's status. Raises NoNode."""

    async def multi(self, operations: Sequence[TreeOperation]) -> None:
        """Apply all operations in order, or none. Raises the error of the first failing operation; `error.args` names its path."""

    async def sync(self, path: str) -> None:
        """Wait until reads of this session, of the node and all nodes below it, see every change made before this call.

        Only reads from ZooKeeper can be stale. Call this before a read whose result justifies a deletion.
        """

    def watch(self, path: str) -> Watch:
        """Watch a node. The node need not exist yet."""

    async def close(self) -> None:
        """End the session; its ephemeral nodes vanish. Idempotent."""
