"""Every buffer of a bookie that grows with its clients' requests, with its bound. `docs/operations.md` shows the same table.

The bounds count buffered bytes; Python's own overhead beside them does not grow with the load.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.bookie.core.ledger_table import BUSY_TIMES
from triplicate.bookie.storage.compaction import PORTION_BYTES
from triplicate.bookie.storage.entry_log_writer import BLOCKS_MAX, WRITE_BYTES
from triplicate.bookie.storage.index_vfs import COMMITS_BYTES_MAX
from triplicate.bookie.storage.run_cache import MANY_RUNS, WINDOWS_MAX
from triplicate.bookie.storage.run_copier import BATCH_RUNS
from triplicate.config import BookieSettings

HANDLE_BYTES = 1024
"""Memory of a ledger's handle with its key, verifier and places in tables."""
ASKED_BYTES = 768
"""Memory of a waiting, decoded request and its reference to the peer."""
CHUNK_BYTES = 256 * 1024
"""Largest chunk that asyncio and uvloop deliver at once."""
LOG_WRITERS = 2
"""One for flushes, one for compaction."""
BLOCK_BYTES = 280
"""Memory of the description of one block of an entry log."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """One buffer."""

    buffer: str
    bytes: int
    settings: tuple[str, ...]
    """The settings that determine the bound, without the section."""
    beyond: str
    """The effect when the bound is reached."""
    metric: str


def memory_limits(settings: BookieSettings) -> list[MemoryLimit]:
    """All buffers. A bookie's memory may grow by the sum of their bytes."""
    half = settings.write_cache_bytes // 2
    journals = len(settings.journal_directories)
    return [
        MemoryLimit(
            "unfinished frames of all connections",
            2 * settings.unfinished_frames_bytes + settings.frame_limit_bytes + CHUNK_BYTES,
            ("unfinished_frames_bytes", "frame_limit_bytes"),
            "connections are not read; one that sends nothing more of its frame is closed while others wait",
            "bookie_unfinished_frames_bytes",
        ),
        MemoryLimit(
            "answers waiting to be sent, of all connections",
            settings.answers_waiting_bytes + 2 * (settings.read_turn_bytes + settings.batch_read_bytes),
            ("answers_waiting_bytes", "answers_per_connection_bytes", "read_turn_bytes", "batch_read_bytes"),
            "the connection is not read, and its reads wait",
            "bookie_answers_waiting_bytes",
        ),
        MemoryLimit(
            "reads outstanding",
            settings.reads_outstanding_total * ASKED_BYTES,
            ("reads_outstanding_total", "reads_outstanding"),
            "the connection is not read",
            "bookie_reads_outstanding",
        ),
        MemoryLimit(
            "reads waiting for a last-add-confirmed",
            settings.long_polls_outstanding * ASKED_BYTES,
            ("long_polls_outstanding", "long_polls_per_connection"),
            "refused: too many requests",
            "bookkeeper_server_READ_ENTRY_LONG_POLL_WAITING",
        ),
        MemoryLimit(
            "what waits for the journals",
            2 * settings.journal_queue_bytes * journals + settings.journal_group_bytes * journals,
            ("journal_queue_bytes", "journal_group_bytes"),
            "connections are not read, then adds are refused: too many requests",
            "bookie_journal_JOURNAL_MEMORY_USED",
        ),
        MemoryLimit(
            "entries not yet flushed",
            4 * half,
            ("write_cache_bytes",),
            "connections are not read, then adds are refused: too many requests",
            "bookie_write_cache_size",
        ),
        MemoryLimit(
            "ledgers' state",
            BUSY_TIMES * settings.ledger_handles * HANDLE_BYTES,
            ("ledger_handles",),
            "idle ones are read from the index again; where all wait to be flushed, requests about others are refused",
            "bookie_ledger_handles",
        ),
        MemoryLimit("pages of the index", settings.index_cache_bytes + 2 * COMMITS_BYTES_MAX, ("index_cache_bytes",), "read again", "-"),
        MemoryLimit("what was read ahead", settings.read_cache_bytes, ("read_cache_bytes",), "read again", "-"),
        MemoryLimit("runs of ledgers that are being read", WINDOWS_MAX * MANY_RUNS * BLOCK_BYTES, (), "looked for again", "-"),
        MemoryLimit("what compaction copies", PORTION_BYTES + 2 * BATCH_RUNS * BLOCK_BYTES, (), "committed", "-"),
        MemoryLimit("blocks on their way into entry logs", LOG_WRITERS * WRITE_BYTES, (), "written", "-"),
        MemoryLimit("footers of the entry logs being filled", LOG_WRITERS * BLOCKS_MAX * BLOCK_BYTES, (), "the log is finished", "-"),
    ]
