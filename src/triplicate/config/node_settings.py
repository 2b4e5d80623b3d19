"""Settings of a database node."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One process that keeps a copy of every database and serves PostgreSQL's protocol."""

    node_id: str = setting("node-1", "Name of this node; every node of a cluster has its own.")
    directory: str = setting("node", "Where the copies of the databases are kept.")
    host: str = setting("127.0.0.1", "Address that the PostgreSQL server listens on.")
    port: int = setting(0, "Port of the PostgreSQL server; 0 takes a free one.", low=0, high=65535)
    advertised_address: str = setting("", "host:port that others are told; empty says where the server listens.")
    connections: int = setting(
        200, "Connections of clients to this node; one more is refused with 53300.", unit="connections", low=1, high=100_000
    )
    database_connections: int = setting(
        0,
        "Connections of clients to one database of this node; 0 sets no limit below the node's.",
        unit="connections",
        low=0,
        high=100_000,
    )
    writer_wait_s: float = setting(10.0, "How long a transaction waits for others to be done writing.", unit="seconds", low=0.01, high=3600)
    transaction_idle_s: float = setting(
        5.0,
        "A writing transaction whose client says nothing for so long is ended, as everybody waits for it.",
        unit="seconds",
        low=0.01,
        high=600,
    )
    transaction_limit_s: float = setting(
        60.0, "A writing transaction that takes longer in all is ended.", unit="seconds", low=0.01, high=3600
    )
    clock_rate_error: float = setting(
        0.01,
        "How wrong the rate of a node's clock may be, of 1. Who takes over waits for so much longer than the lease of a database.",
        low=0.0,
        high=0.5,
    )
    queue_limit: int = setting(10_000, "Single statements that may wait to be written.", unit="statements", low=1, high=1_000_000)
    batch_limit: int = setting(1000, "Single statements that share one log entry.", unit="statements", low=1, high=100_000)
    reader_connections: int = setting(
        64, "Reading statements and snapshots of one database at a time.", unit="connections", low=1, high=1000
    )
    reader_threads: int = setting(2, "Reading statements of one database that run at a time.", unit="statements", low=1, high=64)
    shared_writer_threads: int = setting(
        16, "Threads that write and apply, shared by all databases of the node.", unit="threads", low=1, high=1000
    )
    shared_reader_threads: int = setting(
        16, "Threads that run reading statements, shared by all databases of the node.", unit="threads", low=1, high=1000
    )
    shared_examiner_threads: int = setting(
        2, "Threads that prepare statements, shared by all databases of the node.", unit="threads", low=1, high=1000
    )
    reader_wait_s: float = setting(10.0, "How long a reader waits for a free connection.", unit="seconds", low=0.01, high=3600)
    request_keep_s: float = setting(
        86_400.0,
        "How long the results of request ids and the ids of transactions are kept, by the log's own time. Copies follow the leader's.",
        unit="seconds",
        low=1,
        high=31_536_000,
    )
    request_limit: int = setting(
        10_000_000,
        "Results of request ids that are kept at a time. A leader refuses further ones.",
        unit="requests",
        low=1,
        high=1_000_000_000,
    )
    request_size_bytes: int = setting(
        4096 * MIB,
        "Size of the results kept. With more, a leader keeps of a request that it was run, but not the rows it returned.",
        unit="bytes",
        low=0,
        high=1024 * 1024 * MIB,
    )
    undated_request_limit: int = setting(
        10_000_000,
        "Request ids without a time in them that a database accepts in all its life, as each leaves a trace for good.",
        unit="requests",
        low=0,
        high=1_000_000_000,
    )
    read_idle_s: float = setting(
        60.0,
        "A transaction that only reads, or an open result, whose client says nothing for so long is ended.",
        unit="seconds",
        low=0.05,
        high=86_400,
    )
    snapshot_limit_s: float = setting(
        3600.0,
        "A statement that reads, or a transaction's snapshot, that is older is ended.",
        unit="seconds",
        low=0.05,
        high=604_800,
    )
    wal_limit_bytes: int = setting(
        256 * MIB,
        "When the changes that wait to be moved into a database's file take more, the oldest snapshot is ended.",
        unit="bytes",
        low=64 * 1024,
        high=1024 * 1024 * MIB,
    )
    apply_entries: int = setting(64, "Log entries that a follower applies in one local commit.", unit="entries", low=1, high=10_000)
    apply_size_bytes: int = setting(
        4 * MIB, "A follower commits when entries of this size are applied.", unit="bytes", low=1024, high=1024 * MIB
    )
    snapshot_log_bytes: int = setting(
        256 * MIB,
        "A snapshot of a database is made when its log has grown by this much since the newest one, and the log is truncated behind the "
        "older of the last two; 0 makes snapshots on request only and keeps the whole log.",
        unit="bytes",
        low=0,
        high=2**50,
    )
    snapshot_interval_s: float = setting(
        600.0, "Snapshots of one database are made no more often, however fast its log grows.", unit="seconds", low=0, high=1e9
    )
    snapshot_keep_log_s: float = setting(
        0.0,
        "What is younger than this stays in a database's log, whatever snapshots there are, for readers of changes that are away at times.",
        unit="seconds",
        low=0,
        high=1e9,
    )
    snapshot_turn_s: float = setting(
        60.0,
        "Followers make snapshots in turns, by name, the leader last: how long a node leaves one that is due to each node before it.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    snapshot_rate_bytes_per_s: int = setting(
        64 * MIB,
        "A snapshot is copied, sent and read back no faster than this; 0 sets no limit.",
        unit="bytes per second",
        low=0,
        high=2**40,
    )
    snapshot_wal_limit_bytes: int = setting(
        1024 * MIB,
        "A snapshot is given up when the local write-ahead log, which cannot be reset while the copy is made, grows by more than this.",
        unit="bytes",
        low=MIB,
        high=2**40,
    )
    election_delay_s: float = setting(
        0.15, "How long a candidate leaves the first word to another that has applied more.", unit="seconds", low=0, high=60
    )
    peer_probe_interval_s: float = setting(
        0.2,
        "How often a follower asks the leader at its address whether it is there: where connections are refused after it was reached, the "
        "leader's process has ended and another takes over at once. 0 waits for the end of the leader's session with the metadata.",
        unit="seconds",
        low=0,
        high=60,
    )
    silent_leader_limit_s: float = setting(
        2.0,
        "A leader that answered a follower before and leaves its questions open for so long, as a stopped process or a machine without "
        "power does, is replaced. Longer than any pause of a busy node; 0 waits for the end of its session with the metadata.",
        unit="seconds",
        low=0,
        high=3600,
    )
    report_interval_s: float = setting(1.0, "How often a follower tells others its position.", unit="seconds", low=0.05, high=600)
    retry_first_s: float = setting(0.05, "First delay after a failed read, apply or take-over.", unit="seconds", low=0.001, high=60)
    retry_longest_s: float = setting(2.0, "Longest such delay.", unit="seconds", low=0.01, high=600)
    restart_first_s: float = setting(
        0.5, "First delay before a copy that failed or diverged is opened again.", unit="seconds", low=0.01, high=600
    )
    restart_longest_s: float = setting(60.0, "Longest such delay.", unit="seconds", low=0.01, high=86_400)
    copies_kept: int = setting(
        2,
        "Damaged or wrong copies of each database that are kept when another is built in their place.",
        unit="copies",
        low=1,
        high=100,
    )
    name_wait_s: float = setting(
        15.0,
        "How long a start waits for another node's registration under the same node_id to end, as it does after a crash.",
        unit="seconds",
        low=0,
        high=600,
    )
    dropped_keep_s: float = setting(
        86_400.0, "How long the log of a dropped database is kept for an undelete.", unit="seconds", low=0, high=31_536_000
    )
