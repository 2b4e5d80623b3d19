"""The node of a log's producers: it counts every record before the open segment, and changes with the head or not at all.

A log without producers has no node. The first one creates it, in a transaction that checks that the head is still the writer's.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import BadVersion, LogFenced, NodeExists, NoNode
from triplicate.log.core.head import LogSegment, Owner
from triplicate.log.core.payload import decode_header
from triplicate.log.core.producer_table import ProducerState, decode_producers, encode_producers, merged
from triplicate.log.reading.log_entries import Chunks
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.segments import password_of
from triplicate.metadata import CheckVersion, CreateNode, SetData, TreeOperation, own_paths


def _path(store: HeadStore, name: str) -> str:
    return own_paths.producers_path(store.own_root, name)


async def read_producers(store: HeadStore, name: str, closed: LogSegment | None) -> list[ProducerState] | None:
    """The producers' durable states before the open segment; None: the log has no producers. Changes made before this call are seen.

    Args:
        closed: the open segment, recovered; None: the log has none.
    """
    path = _path(store, name)
    await store.persist(lambda: store.tree.sync(path))
    try:
        data, _ = await store.persist(lambda: store.tree.get(path))
    except NoNode:
        return None
    states, end = decode_producers(data, name)
    if closed is not None and end != closed.first_offset:
        # A writer of a release before this node has closed segments since, whose records nobody has counted.
        store.host.trace("log.producers_uncertain", log=name, counted=end, segment=closed.first_offset)
    return states


def change_of_producers(store: HeadStore, name: str, states: Sequence[ProducerState], end_offset: int) -> TreeOperation:
    """The part of a change of the head that closes a segment: its records are counted from now on."""
    return SetData(_path(store, name), encode_producers(states, end_offset))


async def create_node(store: HeadStore, name: str, log_id: str, epoch: int, owner: Owner) -> None:
    """Create the node for a writer whose log has none, or had none when it was taken over.

    A node that is there nevertheless comes from a writer that had lost the log by then, so none of its records was acknowledged.

    Raises:
        LogFenced: the log belongs to another writer.
    """

    async def attempt() -> None:
        await store.tree.sync(store.path(name))
        while True:
            stored = await store.read_same(name, log_id)
            head = stored.head
            if head.epoch != epoch or head.owner != owner or head.open is None:
                raise LogFenced(f"log {name!r} was taken over (epoch {head.epoch}) from {owner.name!r} (epoch {epoch})")
            data = encode_producers([], head.open.first_offset)
            is_there = await store.tree.exists(_path(store, name)) is not None
            change: TreeOperation = SetData(_path(store, name), data) if is_there else CreateNode(_path(store, name), data)
            try:
                await store.tree.multi([CheckVersion(store.path(name), stored.version), await store.identity(name, log_id), change])
            except (BadVersion, NodeExists, NoNode) as error:
                store.host.trace("log.producers_retried", log=name, error=repr(error))
                await store.tree.sync(store.path(name))
            else:
                return

    await store.persist(attempt)


async def count_producers(
    client: LedgerClient, settings: LogClientSettings, ledger_id: int, first_offset: int, saved: Sequence[ProducerState]
) -> list[ProducerState]:
    """The producers' durable states with the records of a segment that was recovered.

    Args:
        first_offset: of the segment.
    """
    found: dict[bytes, ProducerState] = {}
    view = await client.open(ledger_id, password=password_of(settings))
    try:
        chunks = Chunks(view, 0, view.last_add_confirmed, settings.read_ahead_entries)
        try:
            while (entry := await chunks.next()) is not None:
                header = decode_header(entry.payload)
                producer = header.producer
                if producer is not None:
                    offset = first_offset + header.end_index - 1
                    sequence = producer.sequence + header.count - 1
                    found[producer.id] = ProducerState(producer.id, producer.epoch, sequence, offset, header.wall_time_us)
        finally:
            await chunks.aclose()
    finally:
        await view.aclose()
    return merged(saved, found.values())
