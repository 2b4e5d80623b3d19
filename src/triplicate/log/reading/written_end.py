"""The end of what may have been acknowledged to a log's writers before a moment.

A reader sees a record when an entry behind it, or the writer, says that it is confirmed, which is later than its acknowledgement. So
what can be read does not prove that a copy is up to date; the last entry that the bookies have does. The order is: the head after a
sync, which names every segment in which a record was acknowledged before; the metadata of the open one, which name every bookie that was
needed for that; then those bookies, until no ack quorum can hide among the silent ones.
"""

from __future__ import annotations

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import NoSuchLedger, ReadFailed
from triplicate.log.core.payload import decode_header
from triplicate.log.reading.log_reader import readable_end
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.ownership import live_owner
from triplicate.log.store.segments import password_of
from triplicate.runtime import Backoff, sleep

_ATTEMPTS = 20
"""How often a head is read again whose open segment is gone, before that is an error."""

READABLE_LIMIT_S = 60.0
"""How long a living writer may take to make what it has acknowledged readable."""
UNOWNED_LIMIT_S = 15.0
"""The same while no writer lives: longer than the next one usually takes to take the log over, which makes the last records readable."""
LOOK_FIRST_S = 0.05
LOOK_LONGEST_S = 0.5
"""Bounds of the pauses between looks at a log whose last record cannot be read yet. Most idle writers have sent their no-op after a few."""


async def find_written_end(client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str) -> int:
    """An offset that no record acknowledged before this call exceeds. See `Logs.written_end`."""
    for _ in range(_ATTEMPTS):
        stored = await store.read(name, synced=True)
        segment = stored.head.open
        if segment is None:
            return stored.head.closed_end
        try:
            view = await client.open(segment.ledger_id, password=password_of(settings))
            try:
                entry = await view.read_last_written()
            finally:
                await view.aclose()
        except NoSuchLedger:
            if (await store.read(name, synced=True)).version == stored.version:
                raise
            continue
        written = decode_header(entry.payload).end_index if entry is not None else 0
        return max(stored.head.first_offset, segment.first_offset + written)
    raise NoSuchLedger(f"log {name!r}: its open segment changed at every attempt to read it; try again")


async def await_acknowledged(client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str) -> int:
    """Wait until everything that was acknowledged before this call can be read. See `Logs.acknowledged_end`.

    A take-over may drop a record that was written and not acknowledged, so the end of what is written may shrink meanwhile.
    """
    clock = client.host.clock
    written = await find_written_end(client, store, settings, name)
    pause = Backoff(LOOK_FIRST_S, LOOK_LONGEST_S, client.host.entropy.stream("log.acknowledged_end"))
    began = owned_at = clock.monotonic()
    while (end := await readable_end(client, store, settings, name)) < written:
        now = clock.monotonic()
        if await live_owner(store, name) is not None:
            owned_at = now
        if now >= owned_at + UNOWNED_LIMIT_S:
            client.host.trace("log.unowned_tail", log=name, end=end, written=written)
            break
        if now >= began + READABLE_LIMIT_S:
            raise ReadFailed(
                f"log {name!r}: its writer has written records up to offset {written}, and after {READABLE_LIMIT_S:.0f} s only those "
                f"before {end} can be read; try again, and check that the writer reaches its bookies"
            )
        await sleep(clock, pause.next_s())
        written = min(written, await find_written_end(client, store, settings, name))
    return end
