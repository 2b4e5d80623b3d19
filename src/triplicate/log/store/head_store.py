"""Heads and pages in the metadata tree: reading them, and changing them by compare-and-set with unknown outcomes resolved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import (
    BadVersion,
    ConnectionLost,
    CorruptionError,
    FormatError,
    LedgerVanished,
    LogExists,
    MetadataError,
    NodeExists,
    NoNode,
    NoSuchLog,
    TriplicateError,
)
from triplicate.log.core.head import (
    USER,
    Head,
    LogSegment,
    Page,
    PageReference,
    Purpose,
    decode_head,
    decode_page,
    encode_head,
    encode_page,
)
from triplicate.log.core.head_changes import DEFAULT_LIMITS, Change, PageLimits, all_segments, new_head, numbered, numbered_head
from triplicate.log.store.ledger_ports import Cluster
from triplicate.metadata import (
    CheckVersion,
    CreateNode,
    DeleteNode,
    SetData,
    TreeOperation,
    Watch,
    creation,
    identity_check,
    identity_nodes,
    multi_in_session,
    own_paths,
    store_time_ms,
)
from triplicate.runtime import Backoff, Host, fault_point, sleep

Result = TypeVar("Result")

BACKOFF_FIRST_S = 0.01
BACKOFF_MAXIMUM_S = 1.0
CONNECTION_ATTEMPTS = 12
"""How often one operation is retried after a lost connection: about half a minute, without the store's own timeouts."""
IDENTIFIED_MAXIMUM = 10_000
"""Logs whose identity's node is known to be there, so that it is looked for once."""


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A head and the version of its node, on which a compare-and-set is based."""

    head: Head
    version: int


HeadDecision = tuple[Change, Sequence[TreeOperation]]


def replaced(name: str) -> NoSuchLog:
    """The error of an operation on a log that is gone, where another log has its name now."""
    return NoSuchLog(f"log {name!r} was deleted and created again")


class HeadStore:
    """The nodes of all logs of a cluster. Shared by writers, readers and publishers of one process."""

    def __init__(self, cluster: Cluster, host: Host, settings: LogClientSettings, limits: PageLimits = DEFAULT_LIMITS) -> None:
        tree, own_root = cluster.tree, cluster.own_root
        self.ledgers = cluster.ledgers
        self.tree = tree
        self.own_root = own_root
        self.root = own_paths.logs_path(own_root)
        self.host = host
        self.settings = settings
        self.limits = limits
        self._random = host.entropy.stream("log")
        self._pages: dict[tuple[str, int], Page] = {}
        self._identified: dict[str, None] = {}
        self._left: dict[str, Callable[[bytes], bool]] = {}
        """Ephemeral nodes that could not be deleted when their owners ended, and which of them are theirs, by the data."""

    def path(self, name: str) -> str:
        """The node of a log's head."""
        return own_paths.log_path(self.own_root, name)

    def token(self) -> str:
        """A unique name for one change, or one log."""
        return self._random.randbytes(16).hex()

    def backoff(self) -> Backoff:
        return Backoff(BACKOFF_FIRST_S, BACKOFF_MAXIMUM_S, self._random)

    def watch(self, name: str) -> Watch:
        """A watch that fires when the head may have changed."""
        return self.tree.watch(self.path(name))

    async def persist(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """Run a read or an idempotent change, and retry it after lost connections.

        Raises:
            ConnectionLost: every attempt lost its connection.
        """
        backoff = self.backoff()
        while True:
            try:
                result = await operation()
            except ConnectionLost:
                if backoff.attempts >= CONNECTION_ATTEMPTS:
                    raise
                await sleep(self.host.clock, backoff.next_s())
            else:
                await self._delete_left()
                return result

    async def delete_own(self, path: str, is_own: Callable[[bytes], bool]) -> None:
        """Delete an ephemeral node if its data are the caller's."""
        session_id = self.tree.session_id
        try:
            data, stat = await self.tree.get(path)
            if is_own(data):
                await multi_in_session(self.tree, session_id, [DeleteNode(path, stat.version)])
        except (NoNode, BadVersion):
            return

    def delete_later(self, path: str, is_own: Callable[[bytes], bool]) -> None:
        """Delete an ephemeral node, as `delete_own`, once the store has answered another operation."""
        self._left[path] = is_own

    async def _delete_left(self) -> None:
        while self._left:
            path, is_own = self._left.popitem()
            try:
                await self.delete_own(path, is_own)
            except BaseException as error:
                self._left.setdefault(path, is_own)
                if not isinstance(error, TriplicateError):
                    raise
                return

    async def create(
        self, name: str, settings: LogSettings, purpose: Purpose = USER, key_id: str = "", *, first_offset: int = 0, epoch: int = 0
    ) -> StoredHead:
        """Create the nodes of a new log. See `new_head`.

        Raises:
            LogExists: the name is in use. ArgumentError: it is no valid name.
        """
        path = self.path(name)
        created_ms = self.host.clock.wall_us() // 1000
        head = new_head(self.token(), self.token(), settings, created_ms, purpose, key_id, first_offset=first_offset, epoch=epoch)
        beside = CreateNode(f"{path}/pages"), CreateNode(f"{path}/publishers")
        operations = [*creation(path, encode_head(head), head.log_id), *beside]
        await self.persist(self._ensure_root)

        async def attempt() -> StoredHead:
            try:
                await self.tree.multi(operations)
            except NodeExists:
                stored = await self._get(name)
                if stored.head.log_id != head.log_id:
                    hint = "; it is being deleted: run the deletion again" if stored.head.deleted else ""
                    raise LogExists(f"log {name!r} exists already{hint}") from None
                return stored
            return StoredHead(head, 0)

        return await self.persist(attempt)

    async def identity(self, name: str, log_id: str, *, afresh: bool = False) -> CheckVersion:
        """An operation that fails with NoNode unless the log of this id is there: another one of its name does not do.

        Every transaction on a log's head, or on nodes that belong to the log, has it. A version does not, since the nodes
        of a log that was deleted and created again count from 0. A log of an earlier release gets its node here.

        Args:
            afresh: look even if the log was there before.

        Raises:
            NoSuchLog: the log is gone, or another one has its name.
        """
        if afresh or log_id not in self._identified:
            await self.persist(lambda: self._identify(name, log_id))
            if len(self._identified) >= IDENTIFIED_MAXIMUM:
                del self._identified[next(iter(self._identified))]
            self._identified[log_id] = None
        return identity_check(self.path(name), log_id)

    async def _identify(self, name: str, log_id: str) -> None:
        """Find the node of a log's identity, or make it."""
        path = self.path(name)
        backoff = self.backoff()
        while await self.tree.exists(own_paths.identity_path(path, log_id)) is None:
            await self.tree.sync(path)
            stored = await self._get(name)
            if stored.head.log_id != log_id:
                raise replaced(name)
            # The folder has the same path for all logs of the name: where the next log of the name has it, it cannot be created.
            try:
                await self.tree.multi([CheckVersion(path, stored.version), *identity_nodes(path, log_id)])
            except (NodeExists, NoNode, BadVersion):
                if backoff.attempts >= self.settings.change_attempts:
                    raise
                await sleep(self.host.clock, backoff.next_s())

    async def _ensure_root(self) -> None:
        if await self.tree.exists(self.root) is None:
            try:
                await self.tree.create(self.root, parents=True)
            except NodeExists:
                return

    async def names(self) -> list[str]:
        """Names of all logs, sorted, without those being deleted. One that cannot be read, and may be of a newer release, is among them."""
        found: list[str] = []
        for name in await self.nodes():
            try:
                await self.read(name)
            except NoSuchLog:
                continue
            except (FormatError, CorruptionError) as error:
                self.host.trace("log.head_unreadable", log=name, error=repr(error))
            found.append(name)
        return found

    async def nodes(self) -> list[str]:
        """Names of all logs, sorted, also of those that are being deleted or cannot be read."""
        try:
            return (await self.persist(lambda: self.tree.children(self.root)))[0]
        except NoNode:
            return []

    async def read(self, name: str, *, synced: bool = False) -> StoredHead:
        """Read the present head.

        Args:
            synced: include every change made before this call. Otherwise the head may be slightly old, so that absence from it proves
                nothing.

        Raises:
            NoSuchLog: it does not exist, or is being deleted. FormatError, CorruptionError: it cannot be read.
        """
        if synced:
            await self.persist(lambda: self.tree.sync(self.path(name)))
        stored = await self.persist(lambda: self._get(name))
        if stored.head.deleted:
            raise NoSuchLog(f"log {name!r} has been deleted")
        return stored

    async def read_same(self, name: str, log_id: str) -> StoredHead:
        """As `read`, of the log that has this id. Raises NoSuchLog also if another one has its name."""
        stored = await self.read(name)
        if stored.head.log_id != log_id:
            raise replaced(name)
        return stored

    async def read_deleted(self, name: str) -> StoredHead:
        """As `read`, but also of a log whose deletion has begun."""
        return await self.persist(lambda: self._get(name))

    async def _get(self, name: str) -> StoredHead:
        try:
            try:
                data, stat = await self.tree.get(self.path(name))
            except NoNode:
                # It may just have been created through a ZooKeeper server that is ahead of this session's.
                await self.tree.sync(self.root)
                data, stat = await self.tree.get(self.path(name))
        except NoNode:
            raise NoSuchLog(f"no log {name!r}: `triplicate log list` shows those there are, `log create` makes one") from None
        return StoredHead(decode_head(data, name), stat.version)

    async def pages(self, name: str, head: Head, wanted: Callable[[PageReference], bool] = lambda reference: True) -> dict[int, Page]:
        """Pages by number: those that `wanted` selects, and pages beneath them by the same rule.

        Raises:
            NoNode: the head is out of date and a page it refers to is gone; read the head again.
        """
        found: dict[int, Page] = {}
        waiting = [reference for reference in head.pages if wanted(reference)]
        while waiting:
            reference = waiting.pop()
            page = await self.page(name, head.log_id, reference.page)
            found[reference.page] = page
            waiting += [below for below in page.references if wanted(below)]
        return found

    async def page_numbers(self, name: str, head: Head) -> set[int]:
        """Numbers of all pages that a head refers to; pages that list segments are not read. Raises NoNode."""
        found: set[int] = set()
        waiting = list(head.pages)
        while waiting:
            reference = waiting.pop()
            found.add(reference.page)
            if reference.level > 0:
                waiting += (await self.page(name, head.log_id, reference.page)).references
        return found

    async def page(self, name: str, log_id: str, sequence: int) -> Page:
        """One page. Pages are immutable, so one that was read before comes from memory. Raises NoNode."""
        page = self._pages.get((log_id, sequence))
        if page is None:
            data, _ = await self.persist(lambda: self.tree.get(self._page_path(name, sequence)))
            page = decode_page(data, name, sequence)
            if len(self._pages) >= self.settings.page_cache_entries:
                del self._pages[next(iter(self._pages))]
            self._pages[log_id, sequence] = page
        return page

    def _page_path(self, name: str, sequence: int) -> str:
        return own_paths.page_path(self.own_root, name, sequence)

    async def commit(self, name: str, stored: StoredHead, change: Change, extra: Sequence[TreeOperation] = ()) -> StoredHead:
        """Write a change's new pages, then its head and `extra` in one multi-operation on exactly the version it was made for.

        Raises:
            BadVersion: the head or a node of `extra` has changed; this call changed nothing.
            LedgerVanished: a ledger that the change lists is gone; nothing was changed.
            ConnectionLost: the outcome is unknown. The caller reads the head to find out; it may have changed again since.
            NoSuchLog: the log is gone, or another one has its name.
        """
        identity = await self.identity(name, stored.head.log_id)
        numbers: list[int] = []
        for place in range(len(change.pages)):
            numbers.append(await self._write_page(name, numbered(change, numbers, place)))
        head = numbered_head(change, numbers)
        operations: list[TreeOperation] = [SetData(self.path(name), encode_head(head), self.expected_version(stored)), identity]
        operations += [CheckVersion(self._page_path(name, number)) for number in numbers]
        operations += [*self._ledger_checks(change, extra), *extra]
        try:
            committed = await self._swap(name, stored, head, operations)
        except BadVersion:
            await self._delete_pages(name, head.log_id, identity, numbers)  # No head will ever refer to them.
            raise
        await self._delete_pages(name, head.log_id, identity, change.replaced)
        return committed

    def _ledger_checks(self, change: Change, extra: Sequence[TreeOperation]) -> list[TreeOperation]:
        """Checks that each ledger listed for the first time exists. Deletions check the head, so one of two concurrent changes fails."""
        covered = {operation.path for operation in extra}
        return [CheckVersion(path) for path in map(self.ledgers.node_path, change.listed) if path not in covered]

    async def _delete_pages(self, name: str, log_id: str, identity: CheckVersion, numbers: Sequence[int]) -> None:
        """Delete pages that the head does not refer to. Readers with an older head read it again. Failures are left to a sweep."""
        for number in numbers:
            self._pages.pop((log_id, number), None)
            try:
                await self.tree.multi([identity, DeleteNode(self._page_path(name, number))])
            except NoNode:
                continue
            except MetadataError as error:
                self.host.trace("log.pages_left", log=name, pages=len(numbers), error=repr(error))
                return

    @fault_point("log.head_change")
    async def _swap(self, name: str, stored: StoredHead, head: Head, operations: Sequence[TreeOperation]) -> StoredHead:
        """The compare-and-set. The pages of the new head were written before. Raises as `commit`."""
        backoff = self.backoff()
        while True:
            try:
                await self.tree.multi(operations)
            except ConnectionLost:
                if backoff.attempts >= CONNECTION_ATTEMPTS:
                    raise
                await sleep(self.host.clock, backoff.next_s())
            except (BadVersion, NodeExists, NoNode) as error:
                current = await self.read_deleted(name)
                if current.head.token == head.token:
                    return current
                if current.head.log_id != head.log_id:
                    raise replaced(name) from error
                if backoff.attempts:
                    raise ConnectionLost(f"log {name!r}: it is unknown whether the change was applied before others followed") from error
                if isinstance(error, NoNode) and current.version == stored.version:
                    self._raise_vanished(name, str(error))
                raise BadVersion(f"log {name!r}: its head was changed by another process") from error
            else:
                return StoredHead(head, stored.version + 1)

    def _raise_vanished(self, name: str, error: str) -> None:
        """Find out which node was missing although the head is unchanged: a page is written again, a ledger is not."""
        if not error.startswith((f"{self.path(name)}:", f"{self.path(name)}/")):
            raise LedgerVanished(f"log {name!r} cannot list a ledger that is gone; nothing was changed ({error})")

    def expected_version(self, stored: StoredHead) -> int:
        """The version that the head's node must have for a change to be applied: the one that was read."""
        return stored.version

    async def _write_page(self, name: str, page: Page) -> int:
        data = encode_page(page)
        # After a lost connection the page is written again under another number. A sweep deletes the first one if it exists.
        path = await self.persist(lambda: self.tree.create(f"{own_paths.pages_path(self.own_root, name)}/", data, sequential=True))
        return int(path.rpartition("/")[2])

    async def change(self, name: str, decide: Callable[[StoredHead], Awaitable[HeadDecision | None]], *, log_id: str) -> StoredHead:
        """Read, decide and commit. Repeated if the head has changed meanwhile or the outcome is unknown.

        Args:
            log_id: of the log for which the change was asked.
            decide: returns the change of the present head, or None if nothing is to be done. It must recognise its own change if that was
                applied already. Its errors end the change.

        Raises:
            LedgerVanished: a ledger that the change lists is gone.
            NoSuchLog: the log is gone, or another one has its name.
            BadVersion, ConnectionLost: the last attempt's, when all were used up.
        """
        backoff = self.backoff()
        while True:
            stored = await self.read_same(name, log_id)
            try:
                decision = await decide(stored)
                return stored if decision is None else await self.commit(name, stored, *decision)
            except LedgerVanished:
                raise
            except (BadVersion, ConnectionLost, NoNode):
                if backoff.attempts >= self.settings.change_attempts:
                    raise
                await sleep(self.host.clock, backoff.next_s())

    async def now_ms(self) -> int:
        """The time of the metadata store, ms since the epoch, by which ages of nodes are measured."""
        return await self.persist(lambda: store_time_ms(self.tree, self.own_root))

    async def sync(self) -> None:
        """Return when reads of logs include every change made before this call."""
        await self.persist(lambda: self.tree.sync(self.root))

    async def listed(self, name: str, stored: StoredHead) -> list[LogSegment]:
        """Every segment of a head, oldest first, the open one last. Raises NoNode if the head is out of date."""
        pages = await self.pages(name, stored.head)
        return list(all_segments(stored.head, pages))

    async def oldest_first(self, name: str, head: Head) -> AsyncIterator[tuple[LogSegment, ...]]:
        """Yield the closed segments of a head in order, page by page. A page is read when it is reached.

        Raises:
            NoNode: the head is out of date.
        """
        for reference in head.pages:
            async for segments in self.beneath(name, head.log_id, reference.page):
                yield segments
        yield head.recent

    async def beneath(self, name: str, log_id: str, sequence: int) -> AsyncIterator[tuple[LogSegment, ...]]:
        """The segments of a page and of those beneath it, in order. Raises NoNode."""
        page = await self.page(name, log_id, sequence)
        if page.level == 0:
            yield page.segments
        for below in page.references:
            async for segments in self.beneath(name, log_id, below.page):
                yield segments

    async def segments(self, name: str) -> list[LogSegment]:
        """Every segment of the present head, oldest first, the open one last. Raises NoSuchLog."""
        backoff = self.backoff()
        while True:
            stored = await self.read(name)
            try:
                return await self.listed(name, stored)
            except NoNode:
                # A page was replaced and swept since the head was read.
                if backoff.attempts >= self.settings.change_attempts:
                    raise
                await sleep(self.host.clock, backoff.next_s())
