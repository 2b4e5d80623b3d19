"""Truncation by offset, retention, deletion of logs, and sweeping of unreferenced nodes.

A segment is removed in three repeatable steps: it is marked in the list, its ledger is deleted, and it is dropped from the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, BadVersion, ConnectionLost, NoNode, NoSuchLedger, NoSuchLog, NotEmpty, TriplicateError
from triplicate.log.core import head_changes
from triplicate.log.core.head import Head, LogSegment, PageReference, SegmentState, size_beneath
from triplicate.log.core.head_changes import all_segments
from triplicate.log.core.positions import check_offset
from triplicate.log.core.retention import KEPT, kept_bytes, retention_offset
from triplicate.log.store.head_store import HeadDecision, HeadStore, StoredHead, replaced
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.ownership import await_no_owner
from triplicate.log.store.segments import password_of
from triplicate.log.upkeep.log_snapshots import snapshot_ledgers
from triplicate.metadata import CheckVersion, DeleteNode, own_paths
from triplicate.runtime import fault_point, sleep

CLOCKS_APART_MAX_S = 300.0
"""Between the clocks of this process and of the metadata store. Beyond it, retention by age removes nothing."""


async def truncate(client: LedgerClient, store: HeadStore, name: str, offset: int, end_offset: int, *, log_id: str) -> int:
    """Remove the records before an offset. Returns the log's first offset.

    Args:
        log_id: of the log that is meant.
        end_offset: the end of the readable records; the offset may not exceed it.

    Raises:
        ArgumentError: the offset lies beyond the end, or below 0, or is no integer.
    """
    if not 0 <= check_offset(offset) <= end_offset:
        raise ArgumentError(f"log {name!r} ends at {end_offset} and cannot be truncated at {offset}")

    async def decide(stored: StoredHead) -> HeadDecision | None:
        if stored.head.first_offset >= offset:
            return None
        pages = await store.pages(name, stored.head, lambda reference: reference.first_offset < offset)
        return head_changes.truncate(stored.head, offset, pages, store.token()), ()

    await store.change(name, decide, log_id=log_id)
    return (await delete_marked(client, store, name)).head.first_offset


async def delete_marked(client: LedgerClient, store: HeadStore, name: str, *, thorough: bool = False) -> StoredHead:
    """Delete the ledgers of segments that are marked for deletion, then drop the segments.

    Args:
        thorough: search all pages, not only those that begin before the log's first offset.
    """

    def wanted(stored: StoredHead, reference: PageReference) -> bool:
        return thorough or reference.first_offset < stored.head.first_offset

    stored = await store.read(name)
    pages = await store.pages(name, stored.head, lambda reference: wanted(stored, reference))
    marked = [segment for page in pages.values() for segment in page.segments if segment.state is SegmentState.DELETING]
    marked += [segment for segment in stored.head.recent if segment.state is SegmentState.DELETING]
    if not marked:
        return stored
    gone = frozenset(await _delete_ledgers(client, marked))

    async def decide(current: StoredHead) -> HeadDecision | None:
        beneath = await store.pages(name, current.head, lambda reference: wanted(current, reference))
        change = head_changes.remove(current.head, gone, beneath, store.token())
        unchanged = change.head.recent == current.head.recent and change.head.pages == current.head.pages
        return None if unchanged else (change, ())

    return await store.change(name, decide, log_id=stored.head.log_id)


async def _delete_ledgers(client: LedgerClient, segments: Iterable[LogSegment]) -> list[int]:
    deleted: list[int] = []
    for segment in segments:
        try:
            await client.delete(segment.ledger_id)
        except NoSuchLedger:
            client.host.trace("log.already_deleted", ledger=segment.ledger_id)
        deleted.append(segment.ledger_id)
    return deleted


async def tidy(client: LedgerClient, store: HeadStore, name: str, *, most: int | None = None) -> None:
    """Apply retention, then delete the marked segments. Only the pages of these segments are read.

    Args:
        most: limit of the segments removed by this call; None for no limit.
    """
    stored = await store.read(name)
    settings = stored.head.settings
    if settings.retain_size_bytes > 0 and size_beneath(stored.head.pages) is None:
        stored = await _measure(store, name, stored.head.log_id)
    if settings.retain_age_s > 0 or settings.retain_size_bytes > 0:
        offset = await _retention_offset(store, name, stored.head, most)
        if offset is not None:
            await truncate(client, store, name, offset, max(offset, stored.head.closed_end), log_id=stored.head.log_id)
            return
    await delete_marked(client, store, name)


async def _retention_offset(store: HeadStore, name: str, head: Head, most: int | None) -> int | None:
    """The offset at which retention truncates: page by page from the oldest on, while whole pages are removed."""
    left = most if most is not None else sum(reference.count for reference in head.pages) + len(head.recent)
    settings, now_us = await _judged_by(store, name, head.settings)
    rest_bytes = (size_beneath(head.pages) or 0) + kept_bytes(head.recent)
    found: int | None = None
    async for listed in store.oldest_first(name, head):
        segments = listed[:left]
        offset = retention_offset(segments, settings, now_us, rest_bytes)
        found = found if offset is None else offset
        kept = [segment for segment in segments if segment.state in KEPT]
        if kept and (offset is None or offset < kept[-1].end_offset):
            break
        rest_bytes -= kept_bytes(segments)
        left -= len(segments)
        if left <= 0:
            break
    return found


async def _judged_by(store: HeadStore, name: str, settings: LogSettings) -> tuple[LogSettings, int]:
    """The retention that applies, and the time by which ages count, µs: the metadata store's or this process's, the earlier one.

    What retention removes cannot be listed again. If the two clocks differ by much, one of them is wrong, and nothing is removed for its
    age.
    """
    if not settings.retain_age_s:
        return settings, 0
    local_us, store_us = store.host.clock.wall_us(), await store.now_ms() * 1000
    if abs(local_us - store_us) > CLOCKS_APART_MAX_S * 1e6:
        store.host.trace("log.clocks_differ", log=name, ahead_s=(local_us - store_us) // 1_000_000)
        settings = replace(settings, retain_age_s=0)
    return settings, min(local_us, store_us)


async def _measure(store: HeadStore, name: str, log_id: str) -> StoredHead:
    """Read the pages whose sizes an earlier release did not record, and record them in the head."""

    async def decide(stored: StoredHead) -> HeadDecision | None:
        unknown = {reference.page: reference for reference in stored.head.pages if reference.size_bytes is None}
        if not unknown:
            return None
        sizes: dict[int, int] = {}
        for number in unknown:
            sizes[number] = sum([kept_bytes(segments) async for segments in store.beneath(name, stored.head.log_id, number)])
        return head_changes.measured(stored.head, sizes, store.token()), ()

    return await store.change(name, decide, log_id=log_id)


async def delete_log(client: LedgerClient, store: HeadStore, name: str, log_id: str, *, force: bool) -> None:
    """Delete a log with all its ledgers. It can be repeated after an interruption, and leaves alone what is made under the name later.

    Args:
        log_id: of the log that is meant. If it is gone meanwhile, another process has deleted it.

    Raises:
        LogOwned: a writer is alive and `force` is False.
    """
    try:
        await _delete_log(client, store, name, log_id, force=force)
    except NoSuchLog as error:
        client.host.trace("log.already_deleted", log=name, error=str(error))


async def _delete_log(client: LedgerClient, store: HeadStore, name: str, log_id: str, *, force: bool) -> None:
    """Raises NoSuchLog: it is gone."""
    stored = await store.read_deleted(name)
    if not force and not stored.head.deleted:
        await await_no_owner(store, name)
    if not stored.head.deleted:

        async def decide(current: StoredHead) -> HeadDecision | None:
            return head_changes.mark_deleted(current.head, store.token()), ()

        try:
            await store.change(name, decide, log_id=log_id)
        except NoSuchLog:
            client.host.trace("log.already_deleted", log=name)
        stored = await store.read_deleted(name)
    if stored.head.log_id != log_id:
        raise replaced(name)
    # Pages and snapshots are read by name: a ledger that they list is deleted only while the log is there.
    if stored.head.open is not None:
        await _fence(client, store, stored.head.open)
    snapshots, _ = await snapshot_ledgers(store, name)
    for ledger_id in (*await _listed_by(store, name, stored.head), *sorted(snapshots)):
        await _delete_own_ledger(client, store, name, log_id, ledger_id)
    await _delete_nodes(store, name, log_id)


async def _listed_by(store: HeadStore, name: str, head: Head) -> list[int]:
    """The ledgers of a log that is being deleted. None if a page is gone: the nodes follow the ledgers, which are all deleted then."""
    try:
        pages = await store.pages(name, head)
    except NoNode as error:
        store.host.trace("log.already_deleted", log=name, error=str(error))
        return []
    return [segment.ledger_id for segment in all_segments(head, pages)]


async def _delete_own_ledger(client: LedgerClient, store: HeadStore, name: str, log_id: str, ledger_id: int) -> None:
    """Delete a ledger while its log is there. Raises NoSuchLog: it is not. BadVersion: the ledger changes too often."""
    backoff = store.backoff()
    while True:
        identity = await store.identity(name, log_id, afresh=bool(backoff.attempts))
        try:
            await client.delete(ledger_id, checks=[identity])
        except BadVersion:
            if backoff.attempts >= store.settings.change_attempts:
                raise
            await sleep(store.host.clock, backoff.next_s())
        except (NoNode, NoSuchLedger):
            client.host.trace("log.already_deleted", ledger=ledger_id)
            return
        else:
            return


async def _fence(client: LedgerClient, store: HeadStore, segment: LogSegment) -> None:
    """Stop a writer that is still alive. If that fails, the deletion of its ledger stops it a little later."""
    try:
        view = await client.recover(segment.ledger_id, password=password_of(store.settings))
    except TriplicateError as error:
        client.host.trace("log.not_fenced", ledger=segment.ledger_id, error=repr(error))
    else:
        await view.aclose()


@fault_point("log.delete_nodes")
async def _delete_nodes(store: HeadStore, name: str, log_id: str) -> None:
    """Delete the saved positions of consumers, then the head and all nodes below it, also those of other releases.

    Every transaction has the log's identity, and the last one deletes that with the head. So however late a transaction is applied, it
    deletes nodes of this log only.

    Raises:
        NoSuchLog: the log is gone.
    """
    head = store.path(name)
    identities = own_paths.identities_path(head)
    last = [DeleteNode(path) for path in (own_paths.identity_path(head, log_id), identities, head)]
    backoff = store.backoff()
    while True:
        identity = await store.identity(name, log_id, afresh=True)
        try:
            await _delete_below(store, own_paths.consumers_path(store.own_root, name), identity, keep=())
            await _delete_below(store, head, identity, keep=(head, identities))
            # If the answer is lost, the next turn finds that the log is gone.
            await store.tree.multi(last)
        except (NotEmpty, NoNode, ConnectionLost):
            # A publisher, a consumer or a writer has made or deleted a node meanwhile.
            if backoff.attempts >= store.settings.change_attempts:
                raise
            await sleep(store.host.clock, backoff.next_s())
        else:
            return


async def _delete_below(store: HeadStore, path: str, identity: CheckVersion, keep: Sequence[str]) -> None:
    """Delete a node and those below it, except some, while the log is there. Raises NotEmpty, NoNode."""
    try:
        children, _ = await store.tree.children(path)
    except NoNode:
        return
    for child in children:
        if f"{path}/{child}" not in keep:
            await _delete_below(store, f"{path}/{child}", identity, keep)
    if path not in keep:
        await store.tree.multi([identity, DeleteNode(path)])


async def sweep_segments(client: LedgerClient, store: HeadStore, name: str, *, dry_run: bool = False) -> int:
    """Apply retention and delete every marked segment on any page. Returns the number removed from the list.

    Args:
        dry_run: change nothing, and count the marked segments.
    """
    if dry_run:
        return sum(segment.state is SegmentState.DELETING for segment in await store.segments(name))
    before = _listed_count((await store.read(name)).head)
    await tidy(client, store, name)
    after = _listed_count((await delete_marked(client, store, name, thorough=True)).head)
    return max(0, before - after)


def _listed_count(head: Head) -> int:
    return sum(reference.count for reference in head.pages) + len(head.recent)


async def sweep_pages(store: HeadStore, name: str, *, dry_run: bool = False) -> int:
    """Delete unreferenced pages that are older than the sweep's age, by the store's clock. Returns their number."""
    backoff = store.backoff()
    swept = 0
    while True:
        stored = await store.read(name)
        try:
            idle = await _idle_pages(store, name, stored)
            if dry_run:
                return len(idle)
            for path in idle:
                # The next change of the head may refer to an old page. The page is deleted only while the head is unchanged, and a
                # change that refers to it checks that it exists.
                identity = await store.identity(name, stored.head.log_id)
                await store.tree.multi([CheckVersion(store.path(name), stored.version), identity, DeleteNode(path)])
                swept += 1
        except (BadVersion, NoNode):
            if backoff.attempts >= store.settings.change_attempts:
                return swept  # The log changes too often; a later sweep deletes the remaining pages.
            await sleep(store.host.clock, backoff.next_s())
        else:
            return swept


async def _idle_pages(store: HeadStore, name: str, stored: StoredHead) -> list[str]:
    """Paths of old pages that a head does not refer to. Raises NoNode if the head is out of date."""
    referred = await store.page_numbers(name, stored.head)
    folder = own_paths.pages_path(store.own_root, name)
    oldest_ms = await store.now_ms() - int(store.settings.page_sweep_age_s * 1000)
    children, _ = await store.persist(lambda: store.tree.children(folder))
    idle: list[str] = []
    for child in children:
        stat = await store.tree.exists(f"{folder}/{child}")
        if int(child) not in referred and stat is not None and stat.mtime_ms <= oldest_ms:
            idle.append(f"{folder}/{child}")
    return idle
