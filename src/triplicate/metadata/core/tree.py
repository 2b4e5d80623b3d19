"""The metadata tree: a small interface with ZooKeeper's semantics, and nothing more than the layout above it needs.

`memory` defines the semantics and serves the simulator, `sqlite` serves one machine, ZooKeeper a fleet; one contract suite runs
on all. Paths are absolute, '/'-separated, without a trailing slash; data is at most 1 MB.

Outcomes: `ConnectionLost` means that the operation may or may not have been applied; the caller reads again and decides.
`SessionExpired` means that this session's ephemeral nodes are gone and the tree object is finished; a new one must be opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class Stat:
    """A node's facts."""

    version: int
    """Counts changes of the data; 0 when created."""
    cversion: int
    """Counts changes of the list of children."""
    ctime_ms: int
    mtime_ms: int
    ephemeral_owner: int
    """Id of the session that owns an ephemeral node, else 0."""


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
    """A level-triggered watch on one path: it wakes when the node or its children may have changed; the reader reads again.

    Armed from the moment it is made, so: make the watch, read, await `changed`, read again. No change is lost; wake-ups without a
    change may happen. After `ConnectionLost` or a reconnect it wakes as well.
    """

    async def changed(self) -> None:
        """Return when something may have changed since the watch was made or since the last return.

        Raises:
            SessionExpired: the tree is finished.
        """

    def close(self) -> None:
        """Stop watching; idempotent."""


class Tree(Protocol):
    """One session with a metadata store. All methods may raise `ConnectionLost` and `SessionExpired`."""

    @property
    def session_id(self) -> int:
        """Not zero; what `Stat.ephemeral_owner` says for nodes of this session."""

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> str:
        """Create a node and return its path.

        Args:
            sequential: append the parent's counter as ten decimal digits; the counter counts creations of children and never
                goes back while the parent lives.
            parents: create missing parents, persistent and empty.

        Raises:
            NodeExists: it is there. NoNode: the parent is not.
        """

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Data and facts. Raises NoNode."""

    async def exists(self, path: str) -> Stat | None:
        """Facts, or None."""

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data if the version matches. Raises NoNode, BadVersion."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Raises NoNode, BadVersion, NotEmpty."""

    async def children(self, path: str) -> tuple[list[str], Stat]:
        """Names of the children, sorted, and the node's facts. Raises NoNode."""

    async def multi(self, operations: Sequence[TreeOperation]) -> None:
        """All or nothing, in order. Raises the first failing operation's error; `error.args` names its path."""

    async def sync(self, path: str) -> None:
        """Return when reads of this session, of the node and all below it, see every change that was made before this call.

        Only ZooKeeper's reads may be behind. What must not be missed (before something is deleted because it is not there) is read
        after this.
        """

    def watch(self, path: str) -> Watch:
        """Watch a node, which need not exist yet."""

    async def close(self) -> None:
        """End the session; its ephemeral nodes vanish. Idempotent."""
