"""Files of a bookie, made for dumps, and a disk that refuses to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from triplicate.bookie.core.entry_log_format import BlockInfo, encode_footer, encode_run, encode_states_block
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, JOURNAL_MAGIC, FileIdentity, encode_file_header
from triplicate.bookie.core.journal_format import ALIGNMENT, REUSED_KEY, GroupType, encode_group
from triplicate.bookie.core.ledger_data import LedgerData, encode_states
from triplicate.bookie.offline.dump_lines import DumpLine
from triplicate.ledger import EntryCodec
from triplicate.ledger.entry import DigestType
from triplicate.runtime import File
from triplicate.runtime.real_disk import RealDisk
from triplicate.wire import AddRequest, v2

IDENTITY = FileIdentity("bookie-1", "a-cluster", 7, 1)
LOG_HEADER = encode_file_header(ENTRY_LOG_MAGIC, IDENTITY)
KEY = b"k" * 20


class ReadingDisk(RealDisk):
    """Refuses to open a file for writing."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        assert readonly, f"{path} was opened for writing"
        return super().open(path, readonly=True)


def join(buffers: Sequence[Any]) -> bytes:
    return b"".join(bytes(buffer) for buffer in buffers)


def entry_of(ledger_id: int, entry_id: int, payload: bytes = b"payload") -> bytes:
    codec = EntryCodec(ledger_id, DigestType.CRC32C, b"")
    return codec.encode(entry_id, entry_id - 1, len(payload) * (entry_id + 1), payload)


def adds_group(sequence: int, adds: Sequence[tuple[int, int]], *, number: int = 7) -> bytes:
    packets = [v2.encode_request(AddRequest(ledger, entry, KEY, entry_of(ledger, entry))) for ledger, entry in adds]
    return join(encode_group(GroupType.ENTRIES, number, sequence, len(packets), packets))


def states_group(sequence: int, states: Sequence[LedgerData]) -> bytes:
    body, count = encode_states(states)
    return join(encode_group(GroupType.STATES, 7, sequence, count, [body]))


def journal_of(*groups: bytes, zeros: int = 2 * ALIGNMENT, reused: bool = False) -> bytes:
    extra: dict[str, object] = {REUSED_KEY: True} if reused else {}
    return encode_file_header(JOURNAL_MAGIC, FileIdentity("bookie-1", "a-cluster", 7, 1, extra)) + b"".join(groups) + bytes(zeros)


def log_of(runs: Sequence[tuple[int, Sequence[int]]], *, footer: bool = True) -> tuple[bytes, list[BlockInfo]]:
    """An entry log with a run for each (ledger, entry ids), then the states of their ledgers."""
    data, blocks = LOG_HEADER, []
    for ledger_id, entry_ids in runs:
        head, body, run = encode_run(3, ledger_id, entry_ids, [entry_of(ledger_id, each) for each in entry_ids], len(data))
        data += join([head, *body])
        blocks.append(run)
    buffers, states = encode_states_block(3, [LedgerData(ledger_id, KEY, True) for ledger_id, _ in runs], len(data))
    data += join(buffers)
    blocks.append(states)
    if footer:
        data += join(encode_footer(3, blocks, len(data), LOG_HEADER))
    return data, blocks


def kinds(lines: Iterator[DumpLine] | Sequence[DumpLine]) -> list[str]:
    return [line.kind.value for line in lines]


def fact(lines: Sequence[DumpLine], kind: str, name: str) -> list[object]:
    """One fact of all lines of a kind."""
    return [line.facts[name] for line in lines if line.kind.value == kind]


def content_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Modification time and bytes of every file, by its path."""
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()}
