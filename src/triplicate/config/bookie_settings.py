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
        "Permanent name of the bookie in the cluster. Empty: its advertised address and port, which must then be fixed. The command "
        "`triplicate bookie` demands it, or one of those.",
        bookkeeper="bookieId",
    )
    host: str = setting("127.0.0.1", "Address to listen on.", bookkeeper="listeningInterface")
    port: int = setting(3181, "Port to listen on. 0 selects a free port.", low=0, high=65535, bookkeeper="bookiePort")
    advertised_address: str = setting(
        "", "Host that clients connect to. Empty: the address that the bookie listens on.", bookkeeper="advertisedAddress"
    )
    network_location: str = setting(
        "",
        "Region and rack of the machine, as /region/rack or /rack. Clients use it to place copies. `triplicate cluster racks` can "
        "state another location for the cluster.",
    )
    tls: str = setting(
        "off",
        "Whether clients may or must protect their connections by TLS. They begin in clear and ask for it, as BookKeeper's do. offered: "
        "during a change to TLS. required: everything else in clear is refused. Needs security.ca_file, certificate_file and key_file.",
        choices=("off", "offered", "required"),
        bookkeeper="tlsProviderFactoryClass",
    )
    client_certificates: str = setting(
        "none",
        "Whether clients with TLS are asked for a certificate of an authority in security.ca_file. requested: they may have none.",
        choices=("none", "requested", "required"),
        bookkeeper="tlsClientAuthentication",
    )
    authentication: str = setting(
        "none",
        "How a client proves who it is before it may do anything. none: every client may do everything. sasl: a user of users_file with a "
        "password. certificate: a client certificate with roles in its organisational unit, as with BookKeeper's BookieAuthZFactory. "
        "either: such a certificate, or else a user.",
        choices=("none", "sasl", "certificate", "either"),
        bookkeeper="bookieAuthProviderFactoryClass",
    )
    users_file: str = setting(
        "",
        "File with the users that may log in, their verifiers and roles; see `triplicate bookie user`. Only its owner may read it. It is "
        "read again when it changes.",
    )
    mechanisms: tuple[str, ...] = setting(
        ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "DIGEST-MD5", "PLAIN"),
        "Mechanisms by which users may prove their passwords. DIGEST-MD5 is for Apache's clients. Without TLS, PLAIN and "
        "SCRAM-SHA-256-PLUS are never offered.",
    )
    authorized_roles: tuple[str, ...] = setting(
        (),
        "Names that allow everything where they are the first role of a client certificate, beside the roles read, write and admin.",
        bookkeeper="authorizedRoles",
    )
    authentication_timeout_s: float = setting(
        10.0,
        "Maximum time between the beginning of a connection and the end of its TLS handshake and login.",
        unit="seconds",
        low=0.1,
        high=300,
    )
    unauthenticated_connections: int = setting(
        1_000,
        "Maximum number of connections that are not admitted yet, where TLS or a login is required. A further one replaces the "
        "oldest one of the address with the most.",
        unit="connections",
        low=1,
        high=1_000_000,
    )
    unauthenticated_connections_per_address: int = setting(
        100, "The same maximum for one address. An address of IPv6 counts with its /64 network.", unit="connections", low=1, high=1_000_000
    )
    handshakes_per_s: int = setting(
        200,
        "Maximum rate of TLS handshakes, and the number that may come at once. Further clients wait. A handshake takes about a "
        "millisecond of the processor.",
        unit="handshakes per second",
        low=1,
        high=100_000,
    )
    journal_directories: tuple[str, ...] = setting(
        ("journal",),
        "Directories of the journal. Several directories share the ledgers between them. The command `triplicate bookie` demands it.",
        bookkeeper="journalDirectories",
    )
    ledger_directories: tuple[str, ...] = setting(
        ("ledgers",),
        "Directories of the entry logs. The index is in the first. The command `triplicate bookie` demands it.",
        bookkeeper="ledgerDirectories",
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
        "A journal file is finished at this size. After a flush has covered it, it is kept for reuse, or deleted.",
        unit="bytes",
        low=64 * KIB,
        high=16 * GIB,
        bookkeeper="journalMaxSizeMB",
    )
    journal_spare_files: int = setting(
        2,
        "Finished journal files that each journal directory keeps for reuse, beside the next one. Syncs are faster on blocks that were "
        "written before. A write_cache_bytes beyond the size of these files needs more of them. 0: finished files are deleted, and none "
        "is written in advance.",
        unit="files",
        low=0,
        high=1000,
    )
    journal_group_bytes: int = setting(
        2 * MIB,
        "Maximum number of bytes written and synced at once. A single request may be larger.",
        unit="bytes",
        low=4 * KIB,
        high=32 * MIB,
        bookkeeper="journalBufferedWritesThreshold",
    )
    journal_queue_bytes: int = setting(
        32 * MIB,
        "Maximum number of bytes that wait for the journal. Beyond it connections are not read; beyond twice this size adds are refused.",
        unit="bytes",
        low=64 * KIB,
        high=16 * GIB,
        bookkeeper="journalQueueSize",
    )
    write_cache_bytes: int = setting(
        64 * MIB,
        "Memory for entries not yet flushed to entry logs. One half accepts writes while the other half is flushed. While both are "
        "full, connections are not read.",
        unit="bytes",
        low=64 * KIB,
        high=64 * GIB,
        bookkeeper="dbStorage_writeCacheMaxSizeMb",
    )
    flush_interval_s: float = setting(
        10.0,
        "Maximum time between flushes of entries to entry logs. It bounds how much a restart replays.",
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
        "Memory for entries read ahead from entry logs.",
        unit="bytes",
        low=256 * KIB,
        high=64 * GIB,
        bookkeeper="dbStorage_readAheadCacheMaxSizeMb",
    )
    ledger_handles: int = setting(
        20_000,
        "Number of ledgers whose state is kept in memory. Beyond it, the state of idle ledgers is dropped and read from the index again.",
        unit="ledgers",
        low=16,
        high=10_000_000,
        bookkeeper="openFileLimit",
    )

    frame_limit_bytes: int = setting(
        5 * MIB + 10 * KIB,
        "Maximum size of a frame: 5 MiB of payload in every envelope. An add in a larger frame is refused. No client may have a greater "
        "limit.",
        unit="bytes",
        low=4 * KIB,
        high=32 * MIB,
        bookkeeper="nettyMaxFrameSizeBytes",
    )
    frame_excess_bytes: int = setting(
        5 * MIB,
        "An add whose frame exceeds frame_limit_bytes by no more than this is skipped and refused. A larger frame closes the connection.",
        unit="bytes",
        low=0,
        high=64 * MIB,
    )
    connections: int = setting(
        4_000, "Maximum number of open connections. Further connections are closed at once.", unit="connections", low=1, high=1_000_000
    )
    unfinished_frames_bytes: int = setting(
        32 * MIB,
        "Memory for incomplete frames of all connections, and as much again for bytes that wait for a place there. Beyond it "
        "connections are not read.",
        unit="bytes",
        low=64 * KIB,
        high=64 * GIB,
    )
    answers_per_connection_bytes: int = setting(
        4 * MIB,
        "Maximum size of the answers that one connection leaves unread. Beyond it the connection is not read and gets no answers to reads.",
        unit="bytes",
        low=4 * KIB,
        high=GIB,
    )
    answers_waiting_bytes: int = setting(
        64 * MIB,
        "The same limit for all connections together. With many connections, each has only its share of it.",
        unit="bytes",
        low=64 * KIB,
        high=64 * GIB,
    )
    reads_outstanding: int = setting(
        1_000,
        "Maximum number of waiting reads beyond the cache of one connection. Beyond it the connection is not read.",
        unit="requests",
        low=1,
        high=1_000_000,
        bookkeeper="maxPendingReadRequestsPerThread",
    )
    reads_outstanding_total: int = setting(20_000, "The same limit for all connections together.", unit="requests", low=1, high=10_000_000)
    turn_requests: int = setting(
        512,
        "Maximum number of requests other than adds served for one connection before other connections are served.",
        unit="requests",
        low=1,
        high=1_000_000,
    )
    read_turn_bytes: int = setting(
        MIB,
        "Approximate size of the portions in which answers to reads are sent, so that readers do not slow writers.",
        unit="bytes",
        low=4 * KIB,
        high=GIB,
    )
    read_share_beside_writes: float = setting(
        0.03,
        "Maximum share of time for reads that miss the write cache while adds arrive and always wait for a sync. 1 sets no limit.",
        unit="share of time",
        low=0.001,
        high=1.0,
    )
    read_share_beside_rare_writes: float = setting(
        0.25,
        "Maximum share of time for reads that miss the write cache while adds arrive and hardly ever wait for a sync. In between, the "
        "share grows with the square of the time without waiting adds. A value up to bookie.read_share_beside_writes has no effect.",
        unit="share of time",
        low=0.001,
        high=1.0,
    )
    batch_read_bytes: int = setting(
        5 * MIB, "Maximum size of the answer to a batch read.", unit="bytes", low=4 * KIB, high=GIB, bookkeeper="maxBatchReadSize"
    )
    long_polls_per_connection: int = setting(
        1_000,
        "Maximum number of reads of one connection that wait for the last-add-confirmed to advance. Further ones are refused.",
        unit="requests",
        low=1,
        high=1_000_000,
    )
    long_polls_outstanding: int = setting(20_000, "The same limit for all connections together.", unit="requests", low=1, high=10_000_000)
    long_poll_wait_s: float = setting(
        60.0, "Maximum time that such a read waits, even if it requests a longer one.", unit="seconds", low=0.01, high=3600
    )
    clients_before_4_15: bool = setting(
        False,
        "Clients of BookKeeper before 4.15 are in use. They do not know the status for a ledger whose entries may be missing on this "
        "bookie, and get an I/O error instead, which they treat in the same way.",
    )
    verify_on_write: str = setting(
        "refuse",
        "Handling of an entry that arrives with a wrong digest: it is refused, only counted, or not checked. BookKeeper's Java clients "
        "4.16.0 to 4.16.5 and 4.17.0 send such entries under load, with version 3 and pooled buffers: use another release of them.",
        choices=("refuse", "count", "off"),
    )

    gc_interval_s: float = setting(
        600.0, "Interval of the search for deleted ledgers.", unit="seconds", low=0.05, high=86_400 * 7, bookkeeper="gcWaitTime"
    )
    trash_period_s: float = setting(
        86_400.0,
        "Time that entries of a ledger in the trash are kept after the bookie noticed its deletion, so that the ledger can be "
        "undeleted. 0 keeps nothing. The entries of a ledger deleted without the trash, as by Apache's clients, are freed by the next "
        "garbage collection.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
    )
    compaction_threshold: float = setting(
        0.2,
        "A finished entry log with less than this share of live bytes is compacted. 0 disables this.",
        low=0.0,
        high=1.0,
        bookkeeper="minorCompactionThreshold",
    )
    compaction_interval_s: float = setting(
        3600.0,
        "Interval of the search for such entry logs.",
        unit="seconds",
        low=0.05,
        high=86_400 * 365,
        bookkeeper="minorCompactionInterval",
    )
    major_compaction_threshold: float = setting(
        0.8, "The same with a greater share, at a longer interval.", low=0.0, high=1.0, bookkeeper="majorCompactionThreshold"
    )
    major_compaction_interval_s: float = setting(
        86_400.0,
        "Interval of the search for those entry logs.",
        unit="seconds",
        low=0.05,
        high=86_400 * 365,
        bookkeeper="majorCompactionInterval",
    )
    compaction_bytes_per_s: int = setting(
        16 * MIB,
        "Maximum rate of compaction.",
        unit="bytes per second",
        low=4 * KIB,
        high=64 * GIB,
        bookkeeper="compactionRateByBytes",
    )
    scrub_interval_s: float = setting(
        604_800.0,
        "Interval between the beginnings of two passes of the scrubber, which reads all stored entries and has damaged ones replaced. A "
        "pass that takes longer is followed by the next one. 0 disables the scrubber.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
        bookkeeper="localScrubInterval",
    )
    scrub_bytes_per_s: int = setting(
        8 * MIB, "Maximum rate at which the scrubber reads.", unit="bytes per second", low=4 * KIB, high=64 * GIB
    )
    scrub_share_of_time: float = setting(
        0.05, "Maximum share of time in which the scrubber reads and checks.", unit="share of time", low=0.001, high=1.0
    )
    disk_check_interval_s: float = setting(
        10.0, "Interval of the checks of the disks' free space.", unit="seconds", low=0.05, high=3600, bookkeeper="diskCheckInterval"
    )
    disk_usage_warn_threshold: float = setting(
        0.9, "Used fraction of a disk above which the bookie warns.", low=0.01, high=1.0, bookkeeper="diskUsageWarnThreshold"
    )
    disk_usage_threshold: float = setting(
        0.95,
        "Used fraction of a disk above which the bookie becomes read-only.",
        low=0.01,
        high=1.0,
        bookkeeper="diskUsageThreshold",
    )
    disk_usage_low_water: float = setting(
        0.93,
        "Used fraction of every disk below which the bookie becomes writable again.",
        low=0.01,
        high=1.0,
        bookkeeper="diskUsageLwmThreshold",
    )
    reserve_bytes: int = setting(
        32 * MIB,
        "Space reserved in every journal and ledger directory. It is released when the disk is full, so that the bookie can still "
        "start, fence, flush and clean up. Half of write_cache_bytes and journal_preallocate_bytes should fit in it.",
        unit="bytes",
        low=0,
        high=64 * GIB,
    )
    recovery_adds_free_bytes: int = setting(
        64 * MIB,
        "A read-only bookie accepts the adds of a ledger's recovery while its disks have this much free space.",
        unit="bytes",
        low=0,
        high=1024 * GIB,
        bookkeeper="minUsableSizeForHighPriorityWrites",
    )
    registration_check_interval_s: float = setting(
        2.0, "Interval of the bookie's checks that its registration exists.", unit="seconds", low=0.05, high=3600
    )
