"""Settings of a bookie: identity, directories, limits."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class BookieSettings:
    """Section ``bookie``: one storage server."""

    bookie_id: str = setting(
        "",
        "Name of the bookie in the cluster, for ever; empty: its advertised address and port, which must then be fixed.",
        bookkeeper="bookieId",
    )
    host: str = setting("127.0.0.1", "Address to listen on.", bookkeeper="listeningInterface")
    port: int = setting(3181, "Port to listen on; 0 takes a free one.", low=0, high=65535, bookkeeper="bookiePort")
    advertised_address: str = setting("", "Host that clients connect to; empty: the address it listens on.", bookkeeper="advertisedAddress")
    journal_directories: tuple[str, ...] = setting(
        ("journal",), "Directories of the journal; several share the ledgers between them.", bookkeeper="journalDirectories"
    )
    ledger_directories: tuple[str, ...] = setting(
        ("ledgers",), "Directories of the entry logs; the index lives in the first.", bookkeeper="ledgerDirectories"
    )

    journal_preallocate_bytes: int = setting(
        16 * MIB,
        "The journal's file grows in steps of this size.",
        unit="bytes",
        low=4 * KIB,
        high=4 * GIB,
        bookkeeper="journalPreAllocSizeMB",
    )
    journal_file_bytes: int = setting(
        64 * MIB,
        "A journal file is finished at this size. Once a flush has covered it, it is kept to be used again, or deleted.",
        unit="bytes",
        low=64 * KIB,
        high=16 * GIB,
        bookkeeper="journalMaxSizeMB",
    )
    journal_spare_files: int = setting(
        2,
        "Finished journal files that each journal directory keeps to be used again, beside the one that comes next: syncs are quicker "
        "where the blocks were written before. With a write_cache_bytes beyond these files' size more are worth while; 0: all are "
        "deleted, and none is written in advance.",
        unit="files",
        low=0,
        high=1000,
    )
    journal_group_bytes: int = setting(
        2 * MIB,
        "Most bytes that are written and synced at once (one request may be larger).",
        unit="bytes",
        low=4 * KIB,
        high=32 * MIB,
        bookkeeper="journalBufferedWritesThreshold",
    )
    journal_queue_bytes: int = setting(
        32 * MIB,
        "Bytes that may wait for the journal; beyond it connections are not read, beyond twice as much adds are refused.",
        unit="bytes",
        low=64 * KIB,
        high=16 * GIB,
        bookkeeper="journalQueueSize",
    )
    write_cache_bytes: int = setting(
        64 * MIB,
        "Memory for entries not yet flushed to entry logs. Half takes writes while the other half is flushed; a full half is not read on.",
        unit="bytes",
        low=64 * KIB,
        high=64 * GIB,
        bookkeeper="dbStorage_writeCacheMaxSizeMb",
    )
    flush_interval_s: float = setting(
        10.0,
        "Entries are flushed to entry logs at least this often; it bounds how much a restart replays.",
        unit="seconds",
        low=0.01,
        high=3600,
        bookkeeper="flushInterval",
    )
    entry_log_bytes: int = setting(
        256 * MIB, "An entry log is finished at this size.", unit="bytes", low=64 * KIB, high=16 * GIB, bookkeeper="logSizeLimit"
    )
    index_cache_bytes: int = setting(8 * MIB, "Memory for pages of the index.", unit="bytes", low=64 * KIB, high=16 * GIB)
    read_cache_bytes: int = setting(
        16 * MIB,
        "Memory for what was read ahead from entry logs.",
        unit="bytes",
        low=256 * KIB,
        high=64 * GIB,
        bookkeeper="dbStorage_readAheadCacheMaxSizeMb",
    )
    ledger_handles: int = setting(
        20_000,
        "Ledgers whose state is kept in memory; beyond it the state of idle ones is read from the index again.",
        unit="ledgers",
        low=16,
        high=10_000_000,
        bookkeeper="openFileLimit",
    )

    frame_limit_bytes: int = setting(
        5 * MIB + 10 * KIB,
        "Largest frame: 5 MiB of payload in every envelope. An add in a larger one is refused; no client's limit should be greater.",
        unit="bytes",
        low=4 * KIB,
        high=32 * MIB,
        bookkeeper="nettyMaxFrameSizeBytes",
    )
    frame_excess_bytes: int = setting(
        5 * MIB,
        "An add whose frame passes frame_limit_bytes by no more than this is read over and refused; what is larger closes the connection.",
        unit="bytes",
        low=0,
        high=64 * MIB,
    )
    connections: int = setting(4_000, "Connections that may be open; more are closed at once.", unit="connections", low=1, high=1_000_000)
    unfinished_frames_bytes: int = setting(
        32 * MIB,
        "Memory for frames that have not arrived completely, of all connections, and as much for what has not got a place there yet; "
        "beyond it connections are not read.",
        unit="bytes",
        low=64 * KIB,
        high=64 * GIB,
    )
    answers_per_connection_bytes: int = setting(
        4 * MIB,
        "Answers that one connection may leave unread; beyond it the connection is not read and gets no answers to reads.",
        unit="bytes",
        low=4 * KIB,
        high=GIB,
    )
    answers_waiting_bytes: int = setting(
        64 * MIB,
        "The same for all connections together: with many of them each has only its share of this.",
        unit="bytes",
        low=64 * KIB,
        high=64 * GIB,
    )
    reads_outstanding: int = setting(
        1_000,
        "Reads beyond the cache that one connection may have waiting; beyond it the connection is not read.",
        unit="requests",
        low=1,
        high=1_000_000,
        bookkeeper="maxPendingReadRequestsPerThread",
    )
    reads_outstanding_total: int = setting(20_000, "The same for all connections together.", unit="requests", low=1, high=10_000_000)
    turn_requests: int = setting(
        512,
        "Requests other than adds that one connection is served before others have their turn.",
        unit="requests",
        low=1,
        high=1_000_000,
    )
    read_turn_bytes: int = setting(
        MIB,
        "Answers to reads are sent in portions of about this size, so that readers do not slow writers.",
        unit="bytes",
        low=4 * KIB,
        high=GIB,
    )
    read_share_beside_writes: float = setting(
        0.03,
        "Share of time that reads of what is no longer in the write cache may take while adds arrive; 1: as much as they can.",
        unit="share of time",
        low=0.001,
        high=1.0,
    )
    batch_read_bytes: int = setting(
        5 * MIB, "Largest answer to a batch read.", unit="bytes", low=4 * KIB, high=GIB, bookkeeper="maxBatchReadSize"
    )
    long_polls_per_connection: int = setting(
        1_000,
        "Reads of one connection that may wait for a last-add-confirmed to advance; beyond it they are refused.",
        unit="requests",
        low=1,
        high=1_000_000,
    )
    long_polls_outstanding: int = setting(20_000, "Such reads of all connections together.", unit="requests", low=1, high=10_000_000)
    long_poll_wait_s: float = setting(
        60.0, "Longest time that such a read waits, whatever it asks for.", unit="seconds", low=0.01, high=3600
    )
    clients_before_4_15: bool = setting(
        False,
        "Clients of BookKeeper before 4.15 are in use: they do not know the status for a ledger whose entries may be missing here, "
        "and hear of an I/O error instead, which means the same to them.",
    )
    verify_on_write: str = setting(
        "refuse",
        "What happens to an entry whose digest is wrong when it arrives: refused, only counted, or not looked at.",
        choices=("refuse", "count", "off"),
    )

    gc_interval_s: float = setting(
        600.0, "How often ledgers that were deleted are looked for.", unit="seconds", low=0.05, high=86_400 * 7, bookkeeper="gcWaitTime"
    )
    trash_period_s: float = setting(
        86_400.0,
        "Entries of a ledger in the trash are kept so long after the bookie noticed its deletion, so that it can be undeleted; 0: not "
        "at all. What was deleted without the trash, as Apache's clients delete, is freed by the next round.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
    )
    compaction_threshold: float = setting(
        0.2,
        "A finished entry log of which less than this share is alive is rewritten; 0: none is.",
        low=0.0,
        high=1.0,
        bookkeeper="minorCompactionThreshold",
    )
    compaction_interval_s: float = setting(
        3600.0, "How often such logs are looked for.", unit="seconds", low=0.05, high=86_400 * 365, bookkeeper="minorCompactionInterval"
    )
    major_compaction_threshold: float = setting(
        0.8, "The same with a higher share, less often.", low=0.0, high=1.0, bookkeeper="majorCompactionThreshold"
    )
    major_compaction_interval_s: float = setting(
        86_400.0, "How often those are looked for.", unit="seconds", low=0.05, high=86_400 * 365, bookkeeper="majorCompactionInterval"
    )
    compaction_bytes_per_s: int = setting(
        16 * MIB,
        "Bytes per second that compaction copies at most.",
        unit="bytes per second",
        low=4 * KIB,
        high=64 * GIB,
        bookkeeper="compactionRateByBytes",
    )
    disk_check_interval_s: float = setting(
        10.0, "How often the disks' free space is looked at.", unit="seconds", low=0.05, high=3600, bookkeeper="diskCheckInterval"
    )
    disk_usage_warn_threshold: float = setting(
        0.9, "Fraction of a disk in use above which the bookie warns.", low=0.01, high=1.0, bookkeeper="diskUsageWarnThreshold"
    )
    disk_usage_threshold: float = setting(
        0.95,
        "Fraction of a disk in use above which the bookie takes no more normal writes.",
        low=0.01,
        high=1.0,
        bookkeeper="diskUsageThreshold",
    )
    disk_usage_low_water: float = setting(
        0.93, "Fraction of every disk in use below which it takes them again.", low=0.01, high=1.0, bookkeeper="diskUsageLwmThreshold"
    )
    reserve_bytes: int = setting(
        32 * MIB,
        "Space kept back in every journal and ledger directory, given up when the disk is full, so that the bookie can still start, fence, "
        "flush and clean up; half of write_cache_bytes and journal_preallocate_bytes should fit.",
        unit="bytes",
        low=0,
        high=64 * GIB,
    )
    recovery_adds_free_bytes: int = setting(
        64 * MIB,
        "A read-only bookie takes the adds of a ledger's recovery while its disks have this much left.",
        unit="bytes",
        low=0,
        high=1024 * GIB,
        bookkeeper="minUsableSizeForHighPriorityWrites",
    )
    registration_check_interval_s: float = setting(
        2.0, "How often the bookie looks whether its registration is still there.", unit="seconds", low=0.05, high=3600
    )
