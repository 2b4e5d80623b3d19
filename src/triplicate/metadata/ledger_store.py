"""Ledger metadata in the tree: create, read, update by compare-and-set, delete, list, watch.

Source: BookKeeper `AbstractZkLedgerManager`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from triplicate.errors import BadVersion, ConnectionLost, LedgerExists, NodeExists, NoNode, NoSuchLedger, NotEmpty
from triplicate.ledger import LedgerMetadata, decode_metadata, encode_metadata
from triplicate.metadata.core.paths import LEDGER_ID_MAX, LedgerPaths, parent_of
from triplicate.metadata.core.tree import ANY_VERSION, CheckVersion, CreateNode, DeleteNode, SetData, Tree, TreeOperation, Watch
from triplicate.metadata.ledger_ids import LedgerIdGenerator
from triplicate.metadata.retries import Attempts, retried
from triplicate.runtime import Host


@dataclass(frozen=True, slots=True)
class Versioned:
    """Metadata as read or written, and the node's version, which the next update must name."""

    value: LedgerMetadata
    version: int
    created_ms: int = dataclasses.field(default=0, compare=False)
    """Creation time of the node in ms since the epoch, by the store's clock; 0 if the metadata was written, not read."""
    changed_ms: int = dataclasses.field(default=0, compare=False)
    """Time of the node's last change in ms since the epoch, by the store's clock; 0 if the metadata was written, not read."""


class LedgerStore:
    """The ledgers of one cluster."""

    def __init__(self, tree: Tree, host: Host, root: str, paths: LedgerPaths) -> None:
        self._tree = tree
        self._host = host
        self._root = root
        self._paths = paths
        self._ids = LedgerIdGenerator(tree, host, root, paths)
        self._tokens = host.entropy.stream("metadata.creator_token")

    async def new_id(self) -> int:
        """Return an id that no other caller gets. See `LedgerIdGenerator.new_id`."""
        return await self._ids.new_id()

    async def create(self, ledger_id: int, metadata: LedgerMetadata) -> Versioned:
        """Store a new ledger's metadata.

        A creator token is drawn if the metadata has none. After a lost answer, it distinguishes this client's creation from another
        client's.

        Raises:
            LedgerExists: another client created a ledger with this id.
            ConnectionLost: the outcome is unknown even after several attempts.
        """
        if metadata.creator_token is None:
            metadata = dataclasses.replace(metadata, creator_token=self._tokens.randrange(LEDGER_ID_MAX))
        path, data = self._path(ledger_id), encode_metadata(metadata)
        attempts = Attempts(self._host)
        while True:
            try:
                await self._tree.create(path, data, parents=True)
            except NodeExists:
                found = await self._find(ledger_id)
                if found is None:
                    # Deleted since. Its creator is unknown, and ids are not used twice.
                    self._raise_exists(ledger_id)
                if found.value.creator_token != metadata.creator_token:
                    self._raise_exists(ledger_id)
                return found
            except NoNode:
                continue  # A concurrent deletion pruned the parent: create it again.
            except ConnectionLost as error:
                # If the creation was applied, the next attempt finds this client's token.
                await attempts.again(error)
            else:
                return Versioned(metadata, 0)

    async def restore(self, ledger_id: int, metadata: LedgerMetadata, above_version: int, guard: CheckVersion | None = None) -> Versioned:
        """Store the metadata of a deleted ledger again, at a version greater than `above_version`, its version at the deletion.

        A process that read the ledger before its deletion, such as a partitioned writer, may still hold one of the earlier versions. If
        versions restarted at 0, its next update could match and undo the close of a recovery.

        Args:
            guard: another node that must have this version in the same transaction.

        Raises:
            As `create`. BadVersion: the guard's node has another version, or is gone. ArgumentError: the ledger was changed more
                often than one transaction can repeat (some thousand times).
        """
        path, data = self._path(ledger_id), encode_metadata(metadata)
        operations: list[TreeOperation] = [CreateNode(path, data), *[SetData(path, b"")] * above_version, SetData(path, data)]
        if guard is not None:
            operations.append(guard)  # The last one: an existing ledger is found before.
        attempts = Attempts(self._host)
        uncertain = False
        while True:
            try:
                await self._tree.multi(operations)
            except NodeExists:
                if uncertain and await self._holds(path, data, above_version + 1):
                    return Versioned(metadata, above_version + 1)
                found = await self._find(ledger_id)
                if found is not None and metadata.creator_token is not None and found.value.creator_token == metadata.creator_token:
                    return found  # Restored by another client.
                self._raise_exists(ledger_id)
            except NoNode:
                if guard is not None and await retried(self._host, lambda: self._tree.exists(guard.path)) is None:
                    raise BadVersion(f"{guard.path} is gone") from None
                await self._create_parent(path)
            except ConnectionLost as error:
                uncertain = True
                await attempts.again(error)
            else:
                return Versioned(metadata, above_version + 1)

    async def _create_parent(self, path: str) -> None:
        """Create the parent node. A concurrent deletion may prune it again at once."""
        try:
            await retried(self._host, lambda: self._tree.create(parent_of(path), parents=True))
        except NodeExists:
            return

    async def get(self, ledger_id: int) -> Versioned:
        """Read a ledger's metadata.

        Raises:
            NoSuchLedger: the ledger does not exist. FormatError: the metadata cannot be decoded.
        """
        found = await self._find(ledger_id)
        if found is None:
            # The ledger may have been created through another server, and this session's server may not have applied that yet.
            await self.refresh()
            found = await self._find(ledger_id)
        if found is None:
            self._raise_missing(ledger_id)
        return found

    async def exists(self, ledger_id: int) -> bool:
        """Whether the ledger has metadata now."""
        path = self._path(ledger_id)
        return await retried(self._host, lambda: self._tree.exists(path)) is not None

    async def refresh(self) -> None:
        """Wait until reads see every ledger created before this call. Await it before deleting data because its ledger is missing: a
        ZooKeeper server may be behind the others.

        Raises:
            ConnectionLost: the store does not answer. Earlier reads prove nothing then.
        """
        await retried(self._host, lambda: self._tree.sync(self._root))

    async def update(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned:
        """Replace the metadata if its version is still `version`.

        After a lost connection the node is read again. If it holds exactly these bytes at the next version, the update was applied.

        Raises:
            BadVersion: another process changed the metadata; read again and decide.
            NoSuchLedger: the ledger was deleted.
            ConnectionLost: the outcome is unknown even after several attempts.
        """
        path, data = self._path(ledger_id), encode_metadata(metadata)
        attempts = Attempts(self._host)
        uncertain = False
        while True:
            try:
                stat = await self._tree.set(path, data, version)
            except NoNode:
                self._raise_missing(ledger_id)
            except ConnectionLost as error:
                uncertain = True
                await attempts.again(error)
            except BadVersion:
                if uncertain and await self._holds(path, data, version + 1):
                    return Versioned(metadata, version + 1)
                raise
            else:
                return Versioned(metadata, stat.version)

    async def delete(self, ledger_id: int, version: int = ANY_VERSION, checks: Sequence[TreeOperation] = ()) -> None:
        """Delete a ledger's metadata, and its parents that become empty. A missing ledger counts as deleted.

        Args:
            checks: operations of the same transaction. If one fails, the ledger is not deleted.

        Raises:
            BadVersion: the version is not `version`, or a check failed.
        """
        path = self._path(ledger_id)
        try:
            if checks:
                await self._delete_checked(path, version, checks)
            else:
                await retried(self._host, lambda: self._tree.delete(path, version))
        except NoNode:
            return
        parent = parent_of(path)
        while parent != self._root:
            try:
                await self._tree.delete(parent)
            except (NotEmpty, NoNode, ConnectionLost, BadVersion):
                return  # In use, gone, or left to the next deletion: an empty parent is harmless.
            parent = parent_of(parent)

    async def _delete_checked(self, path: str, version: int, checks: Sequence[TreeOperation]) -> None:
        """Raises NoNode: the ledger is gone, perhaps deleted by an attempt whose answer was lost. BadVersion: see `delete`."""
        try:
            await retried(self._host, lambda: self._tree.multi([*checks, DeleteNode(path, version)]))
        except (NoNode, NodeExists, BadVersion) as error:
            if await retried(self._host, lambda: self._tree.exists(path)) is None:
                raise NoNode(f"{path}: no such node") from error
            raise BadVersion(f"{path} stays: it, or what its deletion depends on, has changed ({error})") from error

    def node_path(self, ledger_id: int) -> str:
        """Path of the node that holds a ledger's metadata."""
        return self._path(ledger_id)

    def ids(self) -> LedgerIdIterator:
        """All ledger ids in ascending order, read directory by directory during the iteration. Concurrent creations and deletions may be
        missed."""
        return LedgerIdIterator(self._tree, self._host, self._root, self._paths)

    def watch(self, ledger_id: int) -> Watch:
        """Wakes when the ledger's metadata may have been changed, created or deleted."""
        return self._tree.watch(self._path(ledger_id))

    def _path(self, ledger_id: int) -> str:
        return self._root + self._paths.path(ledger_id)

    async def _find(self, ledger_id: int) -> Versioned | None:
        path = self._path(ledger_id)
        try:
            data, stat = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return Versioned(decode_metadata(data), stat.version, stat.ctime_ms, stat.mtime_ms)

    async def _holds(self, path: str, data: bytes, version: int) -> bool:
        try:
            found, stat = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return False
        return stat.version == version and found == data

    def _raise_missing(self, ledger_id: int) -> NoReturn:
        error = NoSuchLedger(f"ledger {ledger_id} does not exist")
        error.ledger_id = ledger_id
        raise error from None

    def _raise_exists(self, ledger_id: int) -> NoReturn:
        error = LedgerExists(f"ledger {ledger_id} exists already")
        error.ledger_id = ledger_id
        raise error from None


class LedgerIdIterator:
    """Iterates over ledger ids: walks the tree depth first, one directory at a time."""

    def __init__(self, tree: Tree, host: Host, root: str, paths: LedgerPaths) -> None:
        self._tree = tree
        self._host = host
        self._root = root
        self._paths = paths
        self._directories = [""]
        self._found: deque[int] = deque()

    def __aiter__(self) -> LedgerIdIterator:
        return self

    async def __anext__(self) -> int:
        while not self._found:
            if not self._directories:
                raise StopAsyncIteration
            await self._read(self._directories.pop())
        return self._found.popleft()

    async def aclose(self) -> None:
        """End the iteration. Idempotent."""
        self._directories.clear()
        self._found.clear()

    async def _read(self, relative: str) -> None:
        path = self._root + relative
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(path))
        except NoNode:
            return  # Pruned after its parent was listed.
        self._found.extend(self._paths.ledgers(relative, names))
        below = [f"{relative}/{name}" for name in self._paths.subdirectories(relative, names)]
        self._directories.extend(reversed(below))
