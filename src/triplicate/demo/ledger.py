"""The ledger's part of the demonstration: append, kill a bookie, let the writer die, recover, read back, compare copies."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from triplicate.cli import Bar, LocalCluster, remarks
from triplicate.client import Client, LedgerReader, LedgerWriter, connect
from triplicate.errors import BookieError, LedgerFenced, ReadFailed

BATCH = 500
COPY_STRIDE = 16
"""Every so many entries, each copy is read on its own."""


@dataclass
class Stage:
    """One step's work, for the summary."""

    name: str
    records: int
    bytes: int
    seconds: float


@dataclass
class Findings:
    """What the demonstration saw; `verified` holds one answer per check."""

    acknowledged: int = 0
    missing: int = 0
    copies_read: int = 0
    differing_copies: int = 0
    under_replicated: int = 0
    ensemble_changes: int = 0
    killed: str = ""
    stages: list[Stage] = field(default_factory=list)
    verified: dict[str, bool] = field(default_factory=dict)


async def run_ledger(cluster: LocalCluster, lines: Sequence[bytes]) -> Findings:
    """Run the whole part on a cluster that is up.

    Args:
        lines: the records; each becomes one entry.
    """
    findings = Findings()
    uri = cluster.folder.metadata_uri
    async with connect(uri) as producer:
        writer = await producer.create(custom={"application": b"triplicate", "component": b"ledger"})
        remarks.print(f"ledger {writer.ledger_id} on {', '.join(writer.metadata.last_segment.ensemble)}")
        acknowledged = await _append(cluster, writer, lines, findings)
        # The writer is not closed: for everyone else it is a writer that died.
        async with connect(uri) as other:
            started = time.monotonic()
            async with await other.recover(writer.ledger_id) as reader:
                remarks.print(f"another client recovered the ledger: {reader.last_add_confirmed + 1:,} entries")
                findings.stages.append(Stage("recover", reader.last_add_confirmed + 1, 0, time.monotonic() - started))
                findings.verified["the old writer is fenced"] = await _is_fenced(writer)
                findings.verified["closed at the last acknowledged entry"] = reader.last_add_confirmed + 1 == len(acknowledged)
                await _read_back(reader, acknowledged, findings)
                await _compare_copies(cluster, other, reader, findings)
    findings.verified["at least one ensemble change"] = findings.ensemble_changes >= 1
    return findings


async def _append(cluster: LocalCluster, writer: LedgerWriter, lines: Sequence[bytes], findings: Findings) -> list[bytes]:
    """Append everything; after a third, SIGKILL a bookie of the ensemble while a batch is on its way. Returns the digests acknowledged."""
    acknowledged: list[bytes] = []
    kill_at = len(lines) // 3
    started = time.monotonic()
    with Bar("flights appended", len(lines)) as bar:
        for begin in range(0, len(lines), BATCH):
            batch = lines[begin : begin + BATCH]
            on_the_way = writer.append_many_nowait(batch)
            if not findings.killed and begin >= kill_at:
                findings.killed = writer.metadata.last_segment.ensemble[0]
                cluster.kill(findings.killed)
                remarks.print(f"killed {findings.killed} with {len(batch)} entries on their way")
            ids = await on_the_way
            assert ids.start == len(acknowledged), "entries are acknowledged in the order in which they were appended"
            acknowledged += [hashlib.blake2b(line, digest_size=16).digest() for line in batch]
            bar.advance(len(batch))
    findings.acknowledged = len(acknowledged)
    findings.ensemble_changes = writer.ensemble_changes
    findings.stages.append(Stage("append", len(lines), sum(map(len, lines)), time.monotonic() - started))
    return acknowledged


async def _is_fenced(writer: LedgerWriter) -> bool:
    try:
        await writer.append(b"too late")
    except LedgerFenced:
        return True
    return False


async def _read_back(reader: LedgerReader, acknowledged: Sequence[bytes], findings: Findings) -> None:
    """Read every entry and compare it with the producer's own list."""
    started = time.monotonic()
    size_bytes = right = 0
    last = reader.last_add_confirmed
    with Bar("entries read back", last + 1) as bar:
        for begin in range(0, last + 1, BATCH):
            entries = await reader.read(begin, min(last, begin + BATCH - 1))
            for entry in entries:
                size_bytes += len(entry.payload)
                expected = acknowledged[entry.entry_id] if entry.entry_id < len(acknowledged) else b""
                right += hashlib.blake2b(entry.payload, digest_size=16).digest() == expected
            bar.advance(len(entries))
    findings.missing = len(acknowledged) - right
    findings.stages.append(Stage("read back", last + 1, size_bytes, time.monotonic() - started))
    findings.verified["every acknowledged record is there, once, in order"] = findings.missing == 0


async def _compare_copies(cluster: LocalCluster, client: Client, reader: LedgerReader, findings: Findings) -> None:
    """Read copies bookie by bookie: none may differ, and no entry may be without one."""
    started = time.monotonic()
    metadata = await client.metadata_of(reader.ledger_id)
    without_copy = size_bytes = entries = 0
    with Bar("entries compared, copy by copy", reader.last_add_confirmed // COPY_STRIDE + 1) as bar:
        for entry_id in range(0, reader.last_add_confirmed + 1, COPY_STRIDE):
            copies: list[bytes] = []
            ensemble = metadata.ensemble_of(entry_id)
            for bookie_id in ensemble:
                if bookie_id in cluster.running and bookie_id != findings.killed:
                    payload = await _copy(reader, bookie_id, entry_id)
                    copies += [payload] if payload is not None else []
            entries += 1
            findings.copies_read += len(copies)
            size_bytes += sum(map(len, copies))
            findings.differing_copies += len(set(copies)) > 1
            findings.under_replicated += len(copies) < metadata.write_quorum
            without_copy += not copies
            bar.advance()
    findings.stages.append(Stage("compare copies", entries, size_bytes, time.monotonic() - started))
    findings.verified["no two copies differ"] = findings.differing_copies == 0
    findings.verified["no entry without a copy"] = without_copy == 0


async def _copy(reader: LedgerReader, bookie_id: str, entry_id: int) -> bytes | None:
    """One bookie's copy, or None where it has none or does not answer: both are a copy that cannot be counted on."""
    try:
        entry = await reader.read_from(bookie_id, entry_id)
    except (BookieError, ReadFailed):
        return None
    return bytes(entry.payload) if entry is not None else None
