"""The bookie's metrics, with BookKeeper's names where they mean the same. Counted per chunk, group or portion, never per entry.

The data path counts without locks, on the loop. Values that can be computed at scrape time are computed then.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.runtime import Metrics
from triplicate.wire import Status

BYTES_BUCKETS = (4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0)
ENTRIES_BUCKETS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0)


class BookieMetrics:
    """Source of the names: BookKeeper `BookKeeperServerStats`, `DbLedgerStorageStats`."""

    def __init__(self, metrics: Metrics | None) -> None:
        registry = metrics if metrics is not None else Metrics()
        counter, gauge, tally, distribution = registry.counter, registry.gauge, registry.tally, registry.distribution
        self.add_requests = tally("bookkeeper_server_ADD_ENTRY_REQUEST", "Adds received.")
        self.adds = counter("bookkeeper_server_ADD_ENTRY", "Adds answered, by outcome.", ("status",))
        self.adds_ok = self.adds.labels("OK")
        self.adds_refused = counter("bookkeeper_server_ADD_ENTRY_REJECTED", "Adds refused because queues were full.")
        self.read_requests = tally("bookkeeper_server_READ_ENTRY_REQUEST", "Reads received.")
        self.reads = counter("bookkeeper_server_READ_ENTRY", "Reads answered, by outcome.", ("status",))
        self.reads_of = {status: self.reads.labels(status.name) for status in Status}
        self.adds_too_large = counter("bookie_adds_too_large", "Adds refused because their frame passes frame_limit_bytes.")
        self.fences = counter("bookkeeper_server_READ_ENTRY_FENCE_REQUEST", "Fencing reads received.")
        self.other_requests = counter("bookkeeper_server_OTHER_REQUEST", "Other requests received.", ("kind",))
        self.blocked = counter("bookkeeper_server_ADD_ENTRY_BLOCKED", "Times that a connection was not read, by reason.", ("reason",))
        self.connections = gauge("bookkeeper_server_CONNECTIONS", "Open connections.")
        self.unfinished_frames = gauge("bookie_unfinished_frames_bytes", "Bytes received of frames not complete or not yet served.")
        self.answers_waiting = gauge("bookie_answers_waiting_bytes", "Bytes of answers that peers have not taken yet.")
        self.answers_most = gauge("bookie_answers_waiting_bytes_max", "The same of the connection that leaves the most.")
        self.frames_most = gauge("bookie_unfinished_frames_bytes_max", "Bytes of such frames of the connection that has the most.")
        self.reads_outstanding = gauge("bookie_reads_outstanding", "Reads that wait for the reader's worker.")
        self.reads_paced = tally("bookie_reads_paced", "Answers to reads beyond the write cache that waited because adds arrived.")
        self.read_bytes_paced = tally("bookie_read_bytes_paced", "Bytes of entries in them.")
        self.long_polls = gauge("bookkeeper_server_READ_ENTRY_LONG_POLL_WAITING", "Reads that wait for a last-add-confirmed to advance.")
        self.add_latency = distribution(
            "bookie_BOOKIE_ADD_ENTRY", "Seconds between an add's arrival and its answer: the oldest of each group."
        )
        self.add_bytes = tally("bookie_WRITE_BYTES", "Bytes of adds journaled.")
        self.read_bytes = tally("bookie_READ_BYTES", "Bytes of entries in answers to reads.")
        self.syncs = tally("bookie_journal_JOURNAL_SYNC", "Groups written and synced.")
        self.group_entries = distribution(
            "bookie_journal_JOURNAL_FORCE_WRITE_BATCH_ENTRIES", "Entries in a group.", buckets=ENTRIES_BUCKETS
        )
        self.group_bytes = distribution("bookie_journal_JOURNAL_FORCE_WRITE_BATCH_BYTES", "Bytes in a group.", buckets=BYTES_BUCKETS)
        self.journal_waiting = gauge("bookie_journal_JOURNAL_MEMORY_USED", "Bytes waiting for the journal.")
        self.cache_bytes = gauge("bookie_write_cache_size", "Bytes in the write cache, both halves.")
        self.flushes = counter("bookie_flush", "Flushes of the write cache.")
        self.flush_bytes = counter("bookie_flush_size", "Bytes flushed.")
        self.handles = gauge("bookie_ledger_handles", "Ledgers whose state is in memory.")
        self.status = gauge("bookie_SERVER_STATUS", "1 writable, 0 read-only, -1 not registered.")
        self.disk_used = gauge("bookie_ledger_dir_usage", "Fraction of the disk in use.", ("directory",))
        self.disk_warning = gauge("bookie_ledger_dir_warning", "1 while a disk is fuller than the warning threshold.")
        self.reserve_bytes = gauge("bookie_reserve_bytes", "Bytes kept back on the disks; 0 once they were needed.")
        self.unverified = tally("bookie_entries_unverified", "Entries accepted before their ledger's digest was known.")
        self.digest_mismatches = counter("bookie_digest_mismatches", "Entries that arrived with a digest that does not match.")
        self.damaged_reads = counter("bookie_damaged_reads", "Reads that met damaged files or a failing disk.")
        self.ledgers_deleted = counter("bookie_gc_DELETED_LEDGER", "Ledgers deleted because their metadata is gone.")
        self.ledgers_active = gauge("bookie_gc_ACTIVE_LEDGER", "Ledgers at the last look of garbage collection.")
        self.bytes_reclaimed = counter("bookie_gc_RECLAIMED_DELETION_SPACE_BYTES", "Bytes of deleted entry logs.")
        self.minor_compactions = counter("bookie_gc_MINOR_COMPACTION_TOTAL", "Rounds of compaction with the lower threshold.")
        self.major_compactions = counter("bookie_gc_MAJOR_COMPACTION_TOTAL", "Rounds of compaction with the higher threshold.")
        self.compacted_bytes = tally("bookie_gc_COMPACTION_COPIED_BYTES", "Bytes of living runs copied.")
        self.bytes_compacted = counter("bookie_gc_RECLAIMED_COMPACTION_SPACE_BYTES", "Bytes that compaction gave back.")
        self.entry_logs = gauge("bookie_gc_ACTIVE_ENTRY_LOG_COUNT", "Finished entry logs at the last look of compaction.")
        self.entry_log_bytes = gauge("bookie_gc_ACTIVE_ENTRY_LOG_SPACE_BYTES", "Their bytes.")
        self.task_failures = counter("bookie_task_failures", "Background tasks that met an unexpected error and began again.", ("task",))
        self.trash_ledgers = gauge("bookie_gc_TRASH_LEDGERS", "Ledgers without metadata whose entries are kept for a while.")
        self.trash_bytes = gauge("bookie_gc_TRASH_SPACE_BYTES", "Bytes of their entries.")
        self._add_scrubber(registry)

    def _add_scrubber(self, registry: Metrics) -> None:
        counter, gauge, tally = registry.counter, registry.gauge, registry.tally
        self.scrub_errors = counter("scrubber_detectedScrubErrors", "Damaged entries that the scrubber has found.")
        self.scrub_index_faults = counter("bookie_scrub_index_faults", "Times that the scrubber could not read rows of the index.")
        self.scrubbed_entries = tally("bookie_scrub_entries", "Entries that the scrubber has checked.")
        self.scrubbed_bytes = tally("bookie_scrub_bytes", "Bytes that the scrubber has read.")
        self.scrub_progress = gauge("bookie_scrub_progress", "Share of the entry logs of the present pass that are read; 0 between passes.")
        self.scrub_last_pass = gauge("bookie_scrub_last_pass_seconds", "End of the last full pass, in seconds since the epoch.")
        self.scrub_last_damage = gauge("bookie_scrub_last_pass_damaged", "Damaged entries that the last full pass found.")

    def count_group(self, items: Sequence[JournalItem], now: float) -> None:
        """Count a journal group. `now`: the clock's monotonic time."""
        entries = size = 0
        for item in items:
            entries += item.count
            size += item.size_bytes
        self.syncs.inc()
        self.adds_ok.inc(entries)
        self.add_bytes.inc(size)
        self.group_entries.observe(entries)
        self.group_bytes.observe(size)
        self.add_latency.observe(now - items[0].submitted_at)

    def count_flush(self, size_bytes: int) -> None:
        """Count a flush of entries with this size."""
        self.flushes.inc()
        self.flush_bytes.inc(size_bytes)
