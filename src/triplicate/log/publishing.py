"""Publishing: sealed ledgers become segments of a log in one compare-and-set, together with the publisher's name and batch number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.config.log import LogClientSettings
from triplicate.errors import ArgumentError, NoNode, NoSuchLedger, NoSuchLog
from triplicate.log.core import changes
from triplicate.log.core.head import (
    Owner,
    PublisherState,
    Segment,
    SegmentState,
    check_text,
    decode_publisher,
    encode_publisher,
)
from triplicate.log.ledgers import LedgerClient
from triplicate.log.ownership import claim, release
from triplicate.log.segments import count_segment, password_of
from triplicate.log.staging import StagedLedger
from triplicate.log.store import Decision, HeadStore, Stored
from triplicate.log.succession import take_over
from triplicate.metadata import Create, Operation, SetData, own
from triplicate.runtime import fault_point


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a publish.

    Args:
        first_offset, end_offset: the records of the batch; of an older batch than the last, both are the last batch's end.
        already: True if the batch had been published before, and this call added nothing.
        batch: the application's last batch, -1 without application.
    """

    first_offset: int
    end_offset: int
    already: bool
    batch: int


def is_old_batch(state: PublisherState | None, batch: int) -> bool:
    """Whether a batch was published before: batches of one application are published in rising order."""
    return state is not None and batch <= state.batch


async def publish(
    client: LedgerClient,
    store: HeadStore,
    settings: LogClientSettings,
    name: str,
    ledgers: Sequence[int | StagedLedger],
    *,
    application: str | None,
    batch: int | None,
    publisher: str,
) -> Published:
    """See `Logs.publish`."""
    if (application is None) != (batch is None):
        raise ArgumentError("an application publishes batches: give both names, or neither")
    if application is not None:
        check_text("the application's name", application)
    await _take_from_the_dead(client, store, settings, name, publisher)
    state = await read_publisher(store, name, application)
    if is_old_batch(state[0], batch if batch is not None else -1):
        return _already(state[0])
    ids = [item if isinstance(item, int) else item.ledger_id for item in ledgers]
    if len(set(ids)) != len(ids):
        raise ArgumentError("a ledger is given twice")
    segments = [await describe(client, settings, name, item) for item in ledgers]
    answer: list[Published] = []

    async def decide(stored: Stored) -> Decision | None:
        answer.clear()
        state, version = await read_publisher(store, name, application)
        if is_old_batch(state, batch if batch is not None else -1):
            answer.append(_already(state))
            return None
        listed = {segment.ledger_id: segment for segment in await store.listed(name, stored)}
        known = [listed[ledger_id] for ledger_id in ids if ledger_id in listed]
        if known and application is None and len(known) == len([item for item in segments if item.records]):
            answer.append(Published(known[0].first_offset, known[-1].end_offset, True, -1))
            return None
        if known:
            raise ArgumentError(f"ledger {known[0].ledger_id} is a segment of log {name!r} already, from another batch")
        if stored.head.open is not None:
            await _refuse_or_free(client, store, settings, name, publisher)
            raise NoNode("the head has changed since it was read")
        change = changes.publish(stored.head, [segment for segment in segments if segment.records], store.token(), store.limits)
        first = stored.head.closed_end
        end = first + sum(segment.records for segment in segments)
        answer.append(Published(first, end, False, batch if batch is not None else -1))
        if application is None or batch is None:
            return change, ()
        data = encode_publisher(PublisherState(batch, first, end, client.host.clock.wall_us() // 1000))
        path = own.publisher_path(store.own_root, name, application)
        remember: Operation = Create(path, data) if version is None else SetData(path, data, version)
        return change, (remember,)

    await store.change(name, decide)
    return answer[0]


def _already(state: PublisherState | None) -> Published:
    assert state is not None, "an old batch is known from the publisher's node"
    return Published(state.first_offset, state.end_offset, True, state.batch)


async def read_publisher(store: HeadStore, name: str, application: str | None) -> tuple[PublisherState | None, int | None]:
    """What an application published last and its node's version, or (None, None)."""
    if application is None:
        return None, None
    path = own.publisher_path(store.own_root, name, application)
    try:
        data, stat = await store.persist(lambda: store.tree.get(path))
    except NoNode:
        return None, None
    return decode_publisher(data, application), stat.version


async def _take_from_the_dead(client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, publisher: str) -> None:
    stored = await store.read(name)
    if stored.head.open is not None:
        await _refuse_or_free(client, store, settings, name, publisher)


async def _refuse_or_free(client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, publisher: str) -> None:
    """The log has an open segment: refuse if its writer is alive; otherwise fence, count and close it.

    Raises:
        LogOwned: the message names the writer.
    """
    owner = Owner(check_text("the publisher's name", publisher), store.token())
    await claim(store, name, owner, take_over=False)
    try:
        await take_over(client, store, settings, name, owner, open_next=False)
    finally:
        await release(store, name, owner)


@fault_point("log.describe_ledger")
async def describe(client: LedgerClient, settings: LogClientSettings, name: str, ledger: int | StagedLedger) -> Segment:
    """What a sealed ledger would be as a segment.

    Raises:
        ArgumentError: it is not closed, is no staging ledger for this log, or is not what it is said to be. NoSuchLedger.
    """
    ledger_id = ledger if isinstance(ledger, int) else ledger.ledger_id
    metadata = await client.metadata_of(ledger_id)
    component, log = metadata.custom.get("component", b"").decode(), metadata.custom.get("log", b"").decode()
    if component != "staging" or log != name:
        raise ArgumentError(f"ledger {ledger_id} is {component or 'no part'} of {log or 'nothing'}, not staging for log {name!r}")
    if not metadata.is_closed:
        raise ArgumentError(f"ledger {ledger_id} is not sealed and cannot be published")
    if isinstance(ledger, StagedLedger):
        if metadata.last_entry_id != ledger.last_entry:
            raise ArgumentError(f"ledger {ledger_id} ends at entry {metadata.last_entry_id}, not at {ledger.last_entry} as its writer said")
        return Segment(
            ledger_id, 0, ledger.records, ledger.size_bytes, ledger.last_entry, ledger.min_time_us, ledger.max_time_us, SegmentState.CLOSED
        )
    view = await client.open(ledger_id, password=password_of(settings))
    try:
        return await count_segment(view, Segment(ledger_id, 0))
    finally:
        await view.aclose()


async def is_published(store: HeadStore, name: str, ledger_ids: Sequence[int]) -> bool:
    """Whether every one of some ledgers is a segment of a log. A log that does not exist has none."""
    return (await _listed_ids(store, name)).issuperset(ledger_ids)


@fault_point("log.discard")
async def discard_unpublished(client: LedgerClient, store: HeadStore, name: str, ledger_ids: Sequence[int]) -> list[int]:
    """Delete those of some ledgers that are no segments of a log; returns their ids."""
    listed = await _listed_ids(store, name)
    deleted: list[int] = []
    for ledger_id in ledger_ids:
        if ledger_id not in listed:
            try:
                await client.delete(ledger_id)
            except NoSuchLedger:
                continue
            deleted.append(ledger_id)
    return deleted


async def sweep_orphans(client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str | None) -> list[int]:
    """Delete ledgers made for logs, older than the grace time, that no log lists; returns their ids.

    Args:
        name: only those of this log; None: of all logs, also of logs that are gone.
    """
    oldest_ms = client.host.clock.wall_us() // 1000 - int(settings.orphan_grace_s * 1000)
    suspects: dict[str, list[int]] = {}
    async for ledger_id in client.ledger_ids():
        try:
            metadata = await client.metadata_of(ledger_id)
        except NoSuchLedger:
            continue
        custom = {key: value.decode(errors="replace") for key, value in metadata.custom.items()}
        if custom.get("application") != "triplicate" or custom.get("component") not in ("log", "staging"):
            continue
        created = custom.get("created", "")
        log = custom.get("log", "")
        if created.isdigit() and int(created) <= oldest_ms and log and name in (None, log):
            suspects.setdefault(log, []).append(ledger_id)
    swept: list[int] = []
    for log, ledger_ids in suspects.items():
        swept += await discard_unpublished(client, store, log, ledger_ids)
    return swept


async def _listed_ids(store: HeadStore, name: str) -> frozenset[int]:
    """Asked before ledgers are deleted because they are not listed, so a head that is behind will not do."""
    await store.persist(lambda: store.tree.sync(store.root))
    try:
        return frozenset(segment.ledger_id for segment in await store.segments(name))
    except NoSuchLog:
        return frozenset()
