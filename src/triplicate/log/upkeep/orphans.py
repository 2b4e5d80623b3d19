"""Orphans: ledgers created for a log that the log does not list. They are deleted; a ledger that is listed, or about to be, is not.

Two rules make this safe, independently of clocks and of the speed of processes. The transaction that lists a ledger for the first time
checks that the ledger exists. The transaction that deletes a ledger checks that the head is the one in which the ledger was searched. If a
listing and a deletion are concurrent, one of them fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import BadVersion, CorruptionError, FormatError, NoNode, NoSuchLedger, NoSuchLog, TriplicateError
from triplicate.ledger import LedgerMetadata
from triplicate.log.core.head import Head, PageReference
from triplicate.log.store.head_store import HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.staging_marks import COMPONENT, is_unlisted
from triplicate.log.upkeep.log_snapshots import snapshot_ledgers
from triplicate.metadata import CheckVersion, CreateNode, DeleteNode, TreeOperation, Versioned
from triplicate.runtime import fault_point, map_bounded, sleep

SWEPT = ("log", COMPONENT)
"""Components whose ledgers the head of an existing log lists. Other ledgers that name a log are deleted with the log."""
ListBeside: TypeAlias = Callable[[HeadStore, str], Awaitable[tuple[frozenset[int], list[TreeOperation]]]]
"""Reads the list of ledgers in a node beside a log's head. Returns their ids, and operations that fail once the list has changed."""
LISTS_BESIDE: Mapping[str, ListBeside] = {"snapshot": snapshot_ledgers}
"""By the component of the ledgers, which are swept like those that the head lists."""
DISCARDED_AT_ONCE = 16
"""Ledgers that are examined and deleted concurrently if the list need not be read."""
FOREIGN_MAXIMUM = 1_000_000
"""Limit of the ledgers of other applications that are kept in memory, so that their metadata are not read again."""


class ListedLedgers:
    """The ledgers that one log lists. Pages are immutable, so each is read once, and a later head only needs its new pages."""

    def __init__(self, store: HeadStore, name: str) -> None:
        self._store = store
        self._name = name
        self._log_id = ""
        self._recent: set[int] = set()
        self._beneath: dict[int, frozenset[int]] = {}

    async def holds(self, head: Head, ledger_id: int) -> bool:
        """Whether a head lists a ledger. Raises NoNode if the head is out of date."""
        await self._follow(head)
        return ledger_id in self._recent or any(ledger_id in ids for ids in self._beneath.values())

    async def all(self, head: Head) -> set[int]:
        """Ids of all ledgers of a head. Raises NoNode if the head is out of date."""
        await self._follow(head)
        return self._recent.union(*self._beneath.values())

    async def _follow(self, head: Head) -> None:
        self._recent = {segment.ledger_id for segment in head.recent}
        if head.open is not None:
            self._recent.add(head.open.ledger_id)
        known, self._beneath = (self._beneath if self._log_id == head.log_id else {}), {}
        self._log_id = head.log_id
        for reference in head.pages:
            ids = known.get(reference.page)
            self._beneath[reference.page] = ids if ids is not None else frozenset(await self._read(head, reference))

    async def _read(self, head: Head, reference: PageReference) -> set[int]:
        page = await self._store.page(self._name, head.log_id, reference.page)
        found = {segment.ledger_id for segment in page.segments}
        for below in page.references:
            found |= await self._read(head, below)
        return found


async def delete_unlisted(
    client: LedgerClient,
    store: HeadStore,
    name: str,
    ledger_id: int,
    *,
    found: Versioned | None = None,
    listed: ListedLedgers | None = None,
) -> bool:
    """Delete a ledger unless its log lists it. Returns whether it was deleted.

    Args:
        found: its metadata; it is deleted only while they are unchanged.
        listed: the cache of earlier calls for this log.
    """
    listed = listed if listed is not None else ListedLedgers(store, name)
    backoff = store.backoff()
    while True:
        try:
            stored = await read_or_none(store, name)
            checks = await unchanged(store, name, stored)
            if stored is not None and found is not None and _component(found.value) in LISTS_BESIDE:
                beside, more = await LISTS_BESIDE[_component(found.value)](store, name)
                checks += more
                if ledger_id in beside:
                    return False
            elif stored is not None and not (found and is_unlisted(found.value)) and await listed.holds(stored.head, ledger_id):
                return False
            await client.delete(ledger_id, version=found.version if found is not None else None, checks=checks)
        except (BadVersion, NoNode, NoSuchLog):
            if found is not None and await _version(store, ledger_id) != found.version:
                return False
            if backoff.attempts >= store.settings.change_attempts:
                return False  # The log changes too often; a later sweep deletes the ledger.
            await sleep(store.host.clock, backoff.next_s())
            await store.sync()
        else:
            return True


async def read_or_none(store: HeadStore, name: str) -> StoredHead | None:
    """A log's head, or None if the log does not exist. A log that is being deleted still lists its ledgers."""
    try:
        return await store.read_deleted(name)
    except NoSuchLog:
        return None


async def unchanged(store: HeadStore, name: str, stored: StoredHead | None) -> list[TreeOperation]:
    """Operations that fail unless the head of a log is still the one that was read, or still absent."""
    path = store.path(name)
    if stored is not None:
        return [CheckVersion(path, stored.version), await store.identity(name, stored.head.log_id)]
    # No single operation checks for absence; this pair does.
    return [CreateNode(path), DeleteNode(path)]


async def _version(store: HeadStore, ledger_id: int) -> int | None:
    try:
        return (await store.ledgers.get(ledger_id)).version
    except NoSuchLedger:
        return None


async def discard(client: LedgerClient, store: HeadStore, name: str, ledger: LedgerAppender | None) -> None:
    """Delete a ledger that was not listed. If that fails, the sweep of orphans deletes it later."""
    if ledger is None:
        return
    ledger.abandon()
    try:
        await delete_unlisted(client, store, name, ledger.ledger_id)
    except TriplicateError as error:
        client.host.trace("log.orphan", ledger=ledger.ledger_id, error=repr(error))


@dataclass(slots=True)
class SweepState:
    """State that one sweep leaves to the next, so that less is read.

    Args:
        foreign: ledgers of other applications.
        listed: cached lists by log.
    """

    foreign: set[int] = field(default_factory=set)
    listed: dict[str, ListedLedgers] = field(default_factory=dict)

    def retain(self, names: Sequence[str]) -> None:
        """Drop the lists of logs other than these."""
        self.listed = {name: self.listed[name] for name in names if name in self.listed}


class Sweep:
    """One search through all ledgers of the cluster for those that no log lists.

    Args:
        name: only ledgers of this log; None: of all logs, also of deleted ones.
        memory: kept from one sweep to the next.
    """

    def __init__(
        self, client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str | None, memory: SweepState | None = None
    ) -> None:
        self._client = client
        self._store = store
        self._settings = settings
        self._name = name
        self._memory = memory if memory is not None else SweepState()

    async def run(self, *, dry_run: bool = False, pause_s: float = 0.0) -> list[int]:
        """Delete orphans older than the grace time, by the store's clock. Returns their ids.

        Args:
            dry_run: delete nothing.
            pause_s: pause after each ledger whose metadata were read.
        """
        await self._store.sync()
        now_ms = await self._store.now_ms()
        listed = await self._all_listed()
        swept: list[int] = []
        async for ledger_id in self._client.ledger_ids():
            if ledger_id in listed or ledger_id in self._memory.foreign:
                continue
            try:
                orphan = await self._orphan(ledger_id, now_ms)
                if orphan is not None and await (self._is_unlisted if dry_run else self._delete)(ledger_id, orphan):
                    swept.append(ledger_id)
            except (FormatError, CorruptionError) as error:
                self._client.host.trace("log.orphan_left", ledger=ledger_id, error=repr(error))
            if pause_s > 0:
                await sleep(self._store.host.clock, pause_s)
        return swept

    async def _delete(self, ledger_id: int, found: Versioned) -> bool:
        log = log_of(found.value)
        return await delete_unlisted(self._client, self._store, log, ledger_id, found=found, listed=self._listing(log))

    async def _is_unlisted(self, ledger_id: int, found: Versioned) -> bool:
        log, component = log_of(found.value), _component(found.value)
        stored = await read_or_none(self._store, log)
        if stored is not None and component in LISTS_BESIDE:
            return ledger_id not in (await LISTS_BESIDE[component](self._store, log))[0]
        return stored is None or not await self._listing(log).holds(stored.head, ledger_id)

    async def _all_listed(self) -> set[int]:
        """All listed ledgers, so that metadata are read only of possible orphans. Each deletion checks the list again."""
        found: set[int] = set()
        names = await self._store.nodes()
        self._memory.retain(names)
        for name in names:
            try:
                found |= await self._listing(name).all((await self._store.read(name)).head)
            except (NoSuchLog, NoNode):
                continue
            except (FormatError, CorruptionError) as error:
                # Its list is unknown, so its ledgers stay; those of other logs are swept.
                self._client.host.trace("log.list_unreadable", log=name, error=repr(error))
        return found

    def _listing(self, name: str) -> ListedLedgers:
        return self._memory.listed.setdefault(name, ListedLedgers(self._store, name))

    async def _orphan(self, ledger_id: int, now_ms: int) -> Versioned | None:
        """The metadata of a ledger if it was created for a log and is old enough to be swept; otherwise None."""
        try:
            found = await self._store.ledgers.get(ledger_id)
        except NoSuchLedger:
            return None
        except FormatError as error:
            self._client.host.trace("log.metadata_unreadable", ledger=ledger_id, error=repr(error))
            self._leave(ledger_id)
            return None
        log = log_of(found.value)
        if not log:
            self._leave(ledger_id)
            return None
        if self._name not in (None, log) or now_ms - max(found.created_ms, found.changed_ms) < self._grace_ms(found.value):
            return None
        if _component(found.value) not in (*SWEPT, *LISTS_BESIDE) and await read_or_none(self._store, log) is not None:
            return None
        return found

    def _leave(self, ledger_id: int) -> None:
        if len(self._memory.foreign) < FOREIGN_MAXIMUM:
            self._memory.foreign.add(ledger_id)

    def _grace_ms(self, metadata: LedgerMetadata) -> float:
        # Such a ledger is listed at the end of a job, or after a large database was sent and read back, which may take hours.
        slow = _component(metadata) in (COMPONENT, *LISTS_BESIDE)
        return (self._settings.staging_grace_s if slow else self._settings.orphan_grace_s) * 1000


def log_of(metadata: LedgerMetadata) -> str:
    """The log for which a ledger was created; empty for other ledgers."""
    if metadata.custom.get("application") != b"triplicate":
        return ""
    return metadata.custom.get("log", b"").decode(errors="replace")


def _component(metadata: LedgerMetadata) -> str:
    return metadata.custom.get("component", b"").decode(errors="replace")


@fault_point("log.discard")
async def discard_unpublished(client: LedgerClient, store: HeadStore, name: str, ledger_ids: Sequence[int]) -> list[int]:
    """Delete those of the given ledgers that were created for a log and are not listed by it. Returns their ids."""
    await store.sync()

    async def read(ledger_id: int) -> Versioned | None:
        try:
            found = await store.ledgers.get(ledger_id)
        except NoSuchLedger:
            return None
        if log_of(found.value) != name:
            client.host.trace("log.discard_refused", log=name, ledger=ledger_id)  # Another log may list it.
            return None
        return found

    listed = ListedLedgers(store, name)
    there = list(zip(ledger_ids, await map_bounded(read, ledger_ids, most=DISCARDED_AT_ONCE, name="discard"), strict=True))

    async def discard_one(ledger_id: int, found: Versioned) -> bool:
        return await delete_unlisted(client, store, name, ledger_id, found=found, listed=listed)

    # A ledger whose metadata prove that it is unlisted is deleted without reading the list, which one task at a time may do.
    plain = [(ledger_id, found) for ledger_id, found in there if found is not None and is_unlisted(found.value)]
    deletions = await map_bounded(lambda item: discard_one(*item), plain, most=DISCARDED_AT_ONCE, name="discard")
    gone = {ledger_id for (ledger_id, _), deleted in zip(plain, deletions, strict=True) if deleted}
    for ledger_id, found in there:
        if found is not None and not is_unlisted(found.value) and await discard_one(ledger_id, found):
            gone.add(ledger_id)
    return [ledger_id for ledger_id in ledger_ids if ledger_id in gone]
