"""The demonstration's proof: acknowledged data exists once and in order, and all copies agree.

It relies on nothing that it can check itself: it reads each bookie on its own, the log from its first entry, and the database files on the
disk of each node, and compares them with the producers' notes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from triplicate.client import Client
from triplicate.errors import BookieError, DigestMismatch, MetadataError, ReadFailed
from triplicate.sql import decode_header, decode_transaction
from triplicate_demo.demo_logs import demo_logs
from triplicate_demo.flight_loader import LoadedBatch

EPOCH_SHIFT = 40
"""A transaction's id is epoch * 2^40 + its number in the epoch."""
READ_ENTRIES = 16


@dataclass
class CopyFindings:
    """Findings of reading every bookie on its own, over all ledgers."""

    entries: int = 0
    copies: int = 0
    bytes: int = 0
    differing: int = 0
    under_replicated: int = 0
    without_copy: int = 0
    ensemble_changes: int = 0
    details: list[str] = field(default_factory=list)


async def compare_copies(client: Client, surviving: Sequence[str]) -> CopyFindings:
    """Read each entry of each ledger from each surviving bookie that should hold it.

    Two copies may differ in the last-add-confirmed of their header (a recovery writes its own), never in id, length or payload.
    """
    found = CopyFindings()
    async for ledger_id in client.ledger_ids():
        await compare_ledger(client, ledger_id, surviving, found)
    return found


async def compare_ledger(client: Client, ledger_id: int, surviving: Sequence[str], found: CopyFindings) -> None:
    """`compare_copies` of one ledger; adds to `found`."""
    async with await client.open(ledger_id) as reader:
        last = await reader.read_last_confirmed() if not reader.is_closed else reader.last_add_confirmed
        metadata = await client.metadata_of(ledger_id)
        found.ensemble_changes += sum(1 for segment in metadata.segments[1:] if segment.first_entry_id <= last)
        for entry_id in range(last + 1):
            copies: list[tuple[int, int, bytes]] = []
            for bookie_id in metadata.ensemble_of(entry_id):
                if bookie_id not in surviving:
                    continue
                try:
                    entry = await reader.read_from(bookie_id, entry_id)
                except (BookieError, ReadFailed, DigestMismatch) as error:
                    found.details.append(f"ledger {ledger_id} entry {entry_id} on {bookie_id}: {error}")
                    continue
                if entry is not None:
                    copies.append((entry.entry_id, entry.length, bytes(entry.payload)))
            _judge(found, ledger_id, entry_id, copies, metadata.write_quorum)


def _judge(found: CopyFindings, ledger_id: int, entry_id: int, copies: list[tuple[int, int, bytes]], write_quorum: int) -> None:
    found.entries += 1
    found.copies += len(copies)
    found.bytes += sum(len(payload) for _, _, payload in copies)
    found.under_replicated += len(copies) < write_quorum
    if not copies:
        found.without_copy += 1
        found.details.append(f"ledger {ledger_id} entry {entry_id} has no copy left")
    if any(copy != copies[0] for copy in copies[1:]):
        found.differing += 1
        found.details.append(f"ledger {ledger_id} entry {entry_id}: copies differ")


async def logged_transactions(client: Client, log: str) -> list[int]:
    """Ids of all transactions in a database's log, in order."""
    logs = demo_logs(client)
    head = await logs.head(log)
    found: list[int] = []
    async with await logs.reader(log, head.first_offset) as reader:
        end = await reader.end_offset()
        while reader.position < end:
            entry = await reader.next_entry(timeout_s=30.0)
            if entry is None or entry.preamble is None:
                break
            header = decode_header(bytes(entry.preamble))
            for record in entry.values:
                transaction = decode_transaction(record or b"", header.tables)
                found.append((header.epoch << EPOCH_SHIFT) + transaction.number)
    return found


def missing_transactions(acknowledged: Sequence[LoadedBatch], logged: Sequence[int]) -> list[str]:
    """Complaints about acknowledged transactions that are not in the log exactly once and in the order of their acknowledgement."""
    complaints: list[str] = []
    places: dict[int, int] = {}
    for place, transaction in enumerate(logged):
        if transaction in places:
            complaints.append(f"transaction {transaction} is in the log twice")
        places[transaction] = place
    previous = -1
    for one in acknowledged:
        place = places.get(one.transaction, -1)
        if place < 0:
            complaints.append(f"acknowledged transaction {one.transaction} (batch {one.batch}) is not in the log")
        elif place <= previous:
            complaints.append(f"acknowledged transaction {one.transaction} (batch {one.batch}) is out of order")
        previous = max(previous, place)
    return complaints


@dataclass
class DatabaseCopy:
    """Contents of one node's database file: rows with rowids, and the schema's text."""

    schema: list[tuple[Any, ...]]
    tables: dict[str, list[tuple[Any, ...]]]

    @property
    def rows(self) -> int:
        return sum(len(rows) for rows in self.tables.values())


def read_database(path: Path) -> DatabaseCopy:
    """Read a node's file on disk while the node runs."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.execute("BEGIN")
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid").fetchall()
        tables = {str(name): _rows(connection, str(name)) for kind, name, _, _ in schema if kind == "table"}
        return DatabaseCopy(schema, tables)
    finally:
        connection.close()


def _rows(connection: apsw.Connection, table: str) -> list[tuple[Any, ...]]:
    quoted = '"' + table.replace('"', '""') + '"'
    try:
        return connection.execute(f"SELECT rowid, * FROM {quoted} ORDER BY rowid").fetchall()
    except apsw.SQLError:
        return sorted(connection.execute(f"SELECT * FROM {quoted}").fetchall(), key=repr)


def compare_databases(paths: Sequence[Path], *, timeout_s: float) -> tuple[list[str], DatabaseCopy]:
    """Compare the copies row by row, including rowids and schema. Followers get `timeout_s` to catch up with the leader.

    Returns:
        Complaints (empty when all are equal), and the first copy.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        copies = [read_database(path) for path in paths]
        complaints = [
            f"{path}: {what} differs from {paths[0]}"
            for path, copy in zip(paths[1:], copies[1:], strict=True)
            for what in _differences(copies[0], copy)
        ]
        if not complaints or time.monotonic() > deadline:
            return complaints, copies[0]
        time.sleep(0.2)


def _differences(left: DatabaseCopy, right: DatabaseCopy) -> list[str]:
    found = [] if left.schema == right.schema else ["the schema"]
    return found + [f"table {name}" for name in sorted({*left.tables, *right.tables}) if left.tables.get(name) != right.tables.get(name)]


async def database_log_state(client: Client, log: str) -> tuple[int, list[str]]:
    """Return a log's epoch and the ensemble of its open segment.

    Raises:
        MetadataError: the log has no open segment.
    """
    head = await demo_logs(client).head(log)
    if head.open is None:
        raise MetadataError(f"log {log} has no open segment; does a leader run?")
    metadata = await client.metadata_of(head.open.ledger_id)
    return head.epoch, list(metadata.last_segment.ensemble)
