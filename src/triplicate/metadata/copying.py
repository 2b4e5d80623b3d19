"""Offline copy of a cluster's metadata from one store to another, for example from a SQLite file to ZooKeeper or back.

INSTANCEID, which makes the target a cluster, is written last. An interrupted copy can be repeated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from triplicate.errors import ConfigError, ConnectionLost, CorruptionError, NodeExists, NoNode
from triplicate.metadata.core.paths import SHORT_IDS_END, join, name_of, parent_of
from triplicate.metadata.core.tree import CreateNode, DeleteNode, Tree, TreeOperation
from triplicate.metadata.layout import ClusterMetadata, decode_layout
from triplicate.metadata.ledger_ids import HIGH_MAX
from triplicate.metadata.ledger_store import LedgerStore
from triplicate.metadata.retries import retried
from triplicate.runtime import Host, TaskScope

BATCH_NODES = 200
BATCH_BYTES = 400_000
READS_AT_ONCE = 50

DRAWS_MAX = 50_000
"""Maximum number of nodes drawn to advance the 31-bit id generator. Beyond it, the 63-bit generator is used instead, which takes one step.
That switch cannot be undone and makes ids long, so small clusters avoid it."""

_GENERATORS = ("idgen", "idgen-long")


@dataclass(slots=True)
class CopyReport:
    """The result of a copy. Counts are nodes; each ledger has one. `next_ledger_id` is drawn to verify the generator."""

    instance_id: str
    nodes: int = 0
    bytes: int = 0
    verified: int = 0
    ephemerals_left_out: int = 0
    ledgers: int = 0
    greatest_ledger_id: int | None = None
    next_ledger_id: int = 0


@dataclass(slots=True)
class _CopyBatch:
    paths: list[str] = field(default_factory=list)
    operations: list[TreeOperation] = field(default_factory=list)
    size: int = 0


Progress = Callable[[str, int], None]
"""Called with the name of the step and the number of nodes finished since the last call."""


async def copy_metadata(
    source: ClusterMetadata, target: Tree, host: Host, root: str, *, force: bool = False, progress: Progress = lambda what, count: None
) -> CopyReport:
    """Copy the whole tree of a cluster, BookKeeper's part and Triplicate's, verify it, and advance the id generator past all used ids.

    Ephemeral nodes are left out: they belong to sessions. Versions restart at 0.

    Args:
        source: must not change during the copy.
        target: a store without this cluster and without another one under `root`.
        root: the cluster's root in the target. It may differ from the root in the source.
        force: copy even if bookies or other live processes use the source.

    Raises:
        ConfigError: processes are alive in the source, or the target has a cluster already.
        CorruptionError: verification found a difference. The source was changed during the copy, or other processes use the target.
    """
    running = (await source.bookies.registered()).names
    if running and not force:
        raise ConfigError(f"stop the cluster first: bookies are registered ({', '.join(running)}); --force copies all the same")
    if await _exists(target, host, f"{root}/INSTANCEID"):
        raise ConfigError(f"there is a cluster under {root} in the target already; choose another root, or delete that cluster first")
    copying = _Copying(source, target, host, root, progress)
    if not force:
        await copying.refuse_live()
    return await copying.run()


class _Copying:
    def __init__(self, source: ClusterMetadata, target: Tree, host: Host, root: str, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._host = host
        self._root = root
        self._progress = progress
        self._report = CopyReport(source.instance_id)
        self._instance_path = f"{source.root}/INSTANCEID"

    async def refuse_live(self) -> None:
        """Refuse live database nodes, log writers and replication workers, which hold ephemeral nodes.

        Raises:
            ConfigError: an ephemeral node exists.
        """
        ephemerals: list[str] = []
        for top in (self._source.own_root, f"{self._source.root}/underreplication"):
            async for _ in self._walk(top, ephemerals):
                continue
        if ephemerals:
            more = f" and {len(ephemerals) - 1} more" if len(ephemerals) > 1 else ""
            raise ConfigError(f"stop the cluster first: a process that is alive holds {ephemerals[0]}{more}; --force copies all the same")

    async def run(self) -> CopyReport:
        for top in (self._source.root, self._source.own_root):
            await self._copy(top)
            await self._verify(top)
        if self._report.verified != self._report.nodes:
            raise CorruptionError(f"{self._report.nodes} nodes were copied and {self._report.verified} verified: something else writes")
        await self._set_generator()
        data, _ = await retried(self._host, lambda: self._source.tree.get(self._instance_path))
        await self._store(f"{self._root}/INSTANCEID", data)
        self._count(data)
        self._report.verified += 1
        return self._report

    def _mapped(self, path: str) -> str:
        """The path in the target of a node of the source."""
        below = path.removeprefix(self._source.root)
        return self._root + below if below != path and below[:1] in ("", "/") else path

    def _left_out(self, path: str) -> bool:
        return path == self._instance_path or (parent_of(path) == self._source.root and name_of(path) in _GENERATORS)

    def _count(self, data: bytes) -> None:
        self._report.nodes += 1
        self._report.bytes += len(data)

    async def _copy(self, top: str) -> None:
        if not await _exists(self._source.tree, self._host, top):
            return  # A cluster without logs has no part of Triplicate's.
        await self._create_ancestors(self._mapped(top))
        batch = _CopyBatch()
        ephemerals: list[str] = []
        async for path, data in self._walk(top, ephemerals):
            if batch.paths and (len(batch.paths) == BATCH_NODES or batch.size + len(data) > BATCH_BYTES):
                await self._write(batch)
                batch = _CopyBatch()
            batch.paths.append(self._mapped(path))
            batch.operations.append(CreateNode(self._mapped(path), data))
            batch.size += len(data)
            self._count(data)
        if batch.paths:
            await self._write(batch)
        self._report.ephemerals_left_out += len(ephemerals)

    async def _walk(self, top: str, ephemerals: list[str]) -> AsyncIterator[tuple[str, bytes]]:
        """Every persistent node from `top` down, parents first, with its data. Paths of ephemeral nodes are appended to `ephemerals`."""
        waiting = [top]
        while waiting:
            paths = [waiting.pop() for _ in range(min(READS_AT_ONCE, len(waiting)))]
            for path, found in zip(paths, await self._read(self._source.tree, paths), strict=True):
                if found is None:
                    continue
                data, names, owner = found
                if owner:
                    ephemerals.append(path)
                    continue
                yield path, data
                below = [join(path, name) for name in reversed(names)]
                waiting.extend(child for child in below if not self._left_out(child))

    async def _read(self, tree: Tree, paths: list[str]) -> list[tuple[bytes, list[str], int] | None]:
        async def one(path: str) -> tuple[bytes, list[str], int] | None:
            try:
                data, stat = await retried(self._host, lambda: tree.get(path))
                names, _ = await retried(self._host, lambda: tree.children(path))
            except NoNode:
                return None
            return data, names, stat.ephemeral_owner

        async with TaskScope("copy-read") as scope:
            tasks = [scope.spawn(one(path), name=path) for path in paths]
        return [task.result() for task in tasks]

    async def _write(self, batch: _CopyBatch) -> None:
        try:
            await self._target.multi(batch.operations)
        except (NodeExists, ConnectionLost):
            # An earlier copy was interrupted, or this transaction was applied and its answer lost.
            for operation in batch.operations:
                assert isinstance(operation, CreateNode)
                await self._store(operation.path, operation.data)
        self._progress("copy", len(batch.paths))

    async def _store(self, path: str, data: bytes) -> None:
        try:
            await retried(self._host, lambda: self._target.create(path, data, parents=True))
        except NodeExists:
            await retried(self._host, lambda: self._target.set(path, data))

    async def _create_ancestors(self, path: str) -> None:
        if parent_of(path) != "/" and not await _exists(self._target, self._host, parent_of(path)):
            await self._store(parent_of(path), b"")

    async def _verify(self, top: str) -> None:
        """Read every node of both stores again, and search for nodes that only the target has."""
        chunk: list[tuple[str, bytes]] = []
        async for found in self._walk(top, []):
            chunk.append(found)
            if len(chunk) == READS_AT_ONCE:
                await self._verify_nodes(chunk)
                chunk = []
        await self._verify_nodes(chunk)

    async def _verify_nodes(self, nodes: list[tuple[str, bytes]]) -> None:
        paths = [path for path, _ in nodes]
        sources = await self._read(self._source.tree, paths)
        targets = await self._read(self._target, [self._mapped(path) for path in paths])
        for (path, data), before, after in zip(nodes, sources, targets, strict=True):
            if before is None or after is None or not data == before[0] == after[0]:
                raise CorruptionError(f"{self._mapped(path)}: not the same as {path} in the source; the copy is not complete")
            unexpected = [name for name in after[1] if name not in dict.fromkeys(before[1]) and not self._left_out(join(path, name))]
            if unexpected:
                raise CorruptionError(f"{self._mapped(path)}: has {unexpected[0]}, which the source lacks; empty the target first")
        self._report.verified += len(nodes)
        self._progress("verify", len(nodes))

    # The id generator.

    async def _set_generator(self) -> None:
        """Advance the generator past the greatest existing id and past all generated ids: bookies may still hold entries of deleted
        ledgers."""
        greatest = -1
        async for ledger_id in self._source.ledgers.ids():
            self._report.ledgers += 1
            greatest = ledger_id
        self._report.greatest_ledger_id = greatest if greatest >= 0 else None
        given_out = await self._source.ledgers.new_id()
        first = max(given_out, greatest + 1)
        if first >> 32 >= HIGH_MAX:
            # A client chose an id near the maximum. Ledger creation skips ids in use.
            first = given_out
        layout, _ = await retried(self._host, lambda: self._target.get(f"{self._root}/LAYOUT"))
        paths = decode_layout(layout)
        if paths.long_ids and (first > DRAWS_MAX or first >= SHORT_IDS_END):
            await self._set_long_generator(first)
        else:
            await self._raise_counter(self._root + paths.id_prefix, first)
        target = LedgerStore(self._target, self._host, self._root, paths)
        self._report.next_ledger_id = await target.new_id()
        if self._report.next_ledger_id < first:
            raise CorruptionError(f"the id generator of the target gives {self._report.next_ledger_id}, and {first} is the first free id")

    async def _set_long_generator(self, first: int) -> None:
        high, low = max(first >> 32, 1), first & 0xFFFFFFFF if first >> 32 else 0
        if low > DRAWS_MAX:
            high, low = high + 1, 0
        path = f"{self._root}/idgen-long/HOB-{high:010d}"
        await self._store(path, b"")
        await self._raise_counter(f"{path}/ID-", low)

    async def _raise_counter(self, prefix: str, first: int) -> None:
        """Create and delete nodes until the sequential ones of this parent are numbered from `first` on."""
        path = await retried(self._host, lambda: self._target.create(prefix, sequential=True, parents=True))
        await self._delete(path)
        missing = first - int(name_of(path).removeprefix("ID-")) - 1
        once: list[TreeOperation] = [CreateNode(f"{prefix}raise"), DeleteNode(f"{prefix}raise")]
        while missing > 0:
            operations = once * min(missing, BATCH_NODES)
            # If an answer is lost, some numbers are skipped, which is harmless.
            await retried(self._host, lambda operations=operations: self._target.multi(operations))  # type: ignore[misc]
            missing -= len(operations) // 2
            self._progress("raise the id generator", len(operations) // 2)

    async def _delete(self, path: str) -> None:
        try:
            await retried(self._host, lambda: self._target.delete(path))
        except NoNode:
            return


async def _exists(tree: Tree, host: Host, path: str) -> bool:
    return await retried(host, lambda: tree.exists(path)) is not None
