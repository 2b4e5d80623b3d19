"""The named consumers of logs: opening, listing, resetting and deleting them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from triplicate.config.values import check_seconds
from triplicate.errors import ConsumerFenced, LogReplaced, NoSuchConsumer, OffsetTruncated
from triplicate.log.core.consumer_state import ConsumerState
from triplicate.log.core.head import Owner, check_text
from triplicate.log.reading.log_consumer import ConsumerInfo, LogConsumer
from triplicate.log.reading.record_reader import LogRecords
from triplicate.log.store.consumer_nodes import ConsumerNodes, StoredConsumer, consumer_names
from triplicate.log.store.head_store import HeadStore

OPEN_ATTEMPTS = 20
"""How often an opening or a reset starts over because another process changed the consumer."""
NAMES_SHOWN = 20
"""Consumers that an error lists at most."""


async def open_consumer(
    store: HeadStore,
    log: str,
    name: str,
    *,
    owner: str,
    take_over: bool,
    start: Callable[[], Awaitable[int]],
    records_from: Callable[[int, str], LogRecords],
    save_interval_s: float | None,
    skip_truncated: bool,
) -> LogConsumer:
    """See `Logs.consumer`.

    Args:
        start: finds the position of a new consumer.
        records_from: makes the records from an offset on, of the log with an id.
    """
    if save_interval_s is not None:
        check_seconds("the interval of saves", save_interval_s)
    nodes = ConsumerNodes(store, log, check_text("the consumer's name", name))
    me = Owner(check_text("the owner's name", owner), store.token())
    head = (await store.read(log)).head
    if not take_over:
        await nodes.await_no_owner()
    stored = await _change(nodes, lambda found: _adopt(nodes, head.log_id, found, me, start))
    await nodes.claim(me)
    consumer = LogConsumer(store, nodes, stored, records_from, save_interval_s=save_interval_s, skip_truncated=skip_truncated)
    try:
        first = (await store.read(log)).head.first_offset
        if consumer.position < first and not skip_truncated:
            raise OffsetTruncated(
                f"{nodes} stood at offset {consumer.position}: the records up to {first - 1} were truncated before it read them. Open it "
                f"with skip_truncated, or run `triplicate log consumer reset {log} {name} --to earliest`: it goes on at {first}"
            )
    except BaseException:
        await consumer.close()
        raise
    return consumer


async def _adopt(
    nodes: ConsumerNodes, log_id: str, found: StoredConsumer | None, me: Owner, start: Callable[[], Awaitable[int]]
) -> ConsumerState:
    """The state with which a consumer is opened. Raises LogReplaced: its position belongs to a log that is gone."""
    if found is None:
        return ConsumerState(log_id, await start(), me, 0)
    state = found.state
    if state.log_id != log_id:
        raise LogReplaced(f"{nodes} stood at offset {state.position} of a log of this name that was deleted; reset or delete the consumer")
    return ConsumerState(log_id, state.position, me, state.saved_ms)


async def _change(nodes: ConsumerNodes, decide: Callable[[StoredConsumer | None], Awaitable[ConsumerState]]) -> StoredConsumer:
    """Read, decide and change; again if another process was first. Raises ConsumerFenced: it was at every attempt."""
    attempts = 0
    while True:
        found = await nodes.read(synced=True)
        try:
            return await nodes.write(await decide(found), found)
        except ConsumerFenced:
            attempts += 1
            if attempts >= OPEN_ATTEMPTS:
                raise


async def reset_consumer(
    store: HeadStore, log: str, name: str, position: Callable[[], Awaitable[int]], *, owner: str, force: bool, create: bool
) -> int:
    """See `Logs.reset_consumer`."""
    nodes = ConsumerNodes(store, log, check_text("the consumer's name", name))
    me = Owner(check_text("the owner's name", owner), store.token())
    head = (await store.read(log)).head
    if not force:
        await nodes.await_no_owner()
    saved_ms = store.host.clock.wall_us() // 1000

    async def decide(found: StoredConsumer | None) -> ConsumerState:
        if found is None and not create:
            raise await _no_consumer(store, log, name, "; `--create`, or create=True, makes it")
        return ConsumerState(head.log_id, await position(), me, saved_ms)

    return (await _change(nodes, decide)).state.position


async def _no_consumer(store: HeadStore, log: str, name: str, remedy: str = "") -> NoSuchConsumer:
    names = sorted(await consumer_names(store, log))
    shown = ", ".join(map(repr, names[:NAMES_SHOWN])) + (f" and {len(names) - NAMES_SHOWN} others" if len(names) > NAMES_SHOWN else "")
    return NoSuchConsumer(f"log {log!r} has no consumer {name!r}: it has {shown or 'none'} (`triplicate log consumers {log}`){remedy}")


async def delete_consumer(store: HeadStore, log: str, name: str, *, force: bool) -> None:
    """See `Logs.delete_consumer`."""
    nodes = ConsumerNodes(store, log, name)
    if not force:
        await nodes.await_no_owner()
    if not await nodes.delete():
        raise await _no_consumer(store, log, name)


async def list_consumers(store: HeadStore, log: str, end: int) -> list[ConsumerInfo]:
    """See `Logs.consumers`.

    Args:
        end: where the log ends.
    """
    head = (await store.read(log)).head
    found: list[ConsumerInfo] = []
    for name in await consumer_names(store, log):
        nodes = ConsumerNodes(store, log, name)
        stored, living = await nodes.read(), await nodes.live_owner()
        if stored is None:
            continue  # It was deleted meanwhile.
        position = stored.state.position
        behind, truncated = max(0, end - max(position, head.first_offset)), max(0, head.first_offset - position)
        if stored.state.log_id != head.log_id:
            behind, truncated = 0, 0
        found.append(ConsumerInfo(name, position, behind, truncated, None if living is None else living.name, stored.state.saved_ms))
    return found
