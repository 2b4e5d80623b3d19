"""The end of what may have been acknowledged to a log's writers before a moment.

A reader sees a record when an entry behind it, or the writer, says that it is confirmed, which is later than its acknowledgement. So
what can be read does not prove that a copy is up to date; the last entry that the bookies have does. The order is: the head after a
sync, which names every segment in which a record was acknowledged before; the metadata of the open one, which name every bookie that was
needed for that; then those bookies, until no ack quorum can hide among the silent ones.
"""

from __future__ import annotations

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import NoSuchLedger
from triplicate.log.core.payload import decode_header
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.segments import password_of

_ATTEMPTS = 20
"""How often a head is read again whose open segment is gone, before that is an error."""


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
