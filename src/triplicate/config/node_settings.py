"""Settings of a database node."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One process that keeps copies of databases and serves PostgreSQL's protocol."""

    node_id: str = setting("node-1", "Name of this node, unique in the cluster. The command `triplicate node` demands it.")
    directory: str = setting("node", "Directory of the database copies. The command `triplicate node` demands it.")
    host: str = setting("127.0.0.1", "Address that the PostgreSQL server listens on.")
    port: int = setting(0, "Port of the PostgreSQL server. 0 selects a free port.", low=0, high=65535)
    advertised_address: str = setting("", "host:port published to others. Empty: the address that the server listens on.")
    connections: int = setting(
        200,
        "Maximum number of client connections to this node. Further ones are refused with 53300.",
        unit="connections",
        low=1,
        high=100_000,
    )
    database_connections: int = setting(
        0,
        "Maximum number of client connections to one database of this node. 0 sets no limit below the node's.",
        unit="connections",
        low=0,
        high=100_000,
    )
    client_stall_s: float = setting(
        60.0,
        "A client that does not read its answers, or leaves a message incomplete, is disconnected after this time without progress. "
        "A client that is idle between two messages keeps its connection.",
        unit="seconds",
        low=0.1,
        high=86_400,
    )
    tls: str = setting(
        "off",
        "TLS on the port of the PostgreSQL server, with the certificate of section security. offered leaves the choice to the client. "
        "required refuses connections in the clear.",
        choices=("off", "offered", "required"),
    )
    client_certificates: str = setting(
        "none",
        "Certificates of clients, signed by an authority of security.ca_file. requested: a client may show one. required: it must. "
        "role: and the certificate's common name must be the role. It is demanded in addition to the password.",
        choices=("none", "requested", "required", "role"),
    )
    authentication: str = setting(
        "trust",
        "How clients prove their role. trust: they do not, and every client may do everything. scram: by a password, with SCRAM-SHA-256.",
        choices=("trust", "scram"),
    )
    login_s: float = setting(
        30.0,
        "A connection whose client has not logged in within this time is closed.",
        unit="seconds",
        low=0.1,
        high=600,
    )
    half_open_connections: int = setting(
        0,
        "Maximum number of connections whose clients have not logged in yet. A further one replaces the oldest one of the address with the "
        "most. 0: twice the maximum for one address.",
        unit="connections",
        low=0,
        high=100_000,
    )
    half_open_per_address: int = setting(
        0,
        "The same maximum for one address. 0: node.connections and 50 more.",
        unit="connections",
        low=0,
        high=100_000,
    )
    handshakes_per_s: int = setting(
        200,
        "Maximum rate of TLS handshakes, and the number that may come at once. Further clients wait. A handshake takes about a "
        "millisecond of the processor.",
        unit="handshakes per second",
        low=1,
        high=100_000,
    )
    failed_logins: int = setting(
        20,
        "Number of failed logins after which an address is refused until one of them is forgiven. 0 sets no maximum.",
        unit="logins",
        low=0,
        high=1_000_000,
    )
    failed_login_s: float = setting(
        6.0, "Time after which one failed login of an address is forgiven.", unit="seconds", low=0.01, high=86_400
    )
    audit_log: str = setting(
        "",
        "File of the audit log: logins, refused logins, and changes of roles, one line of JSON each. It is appended to, with mode 0600. "
        "stderr writes to standard error. Empty: no audit log.",
    )
    audit_log_bytes: int = setting(
        64 * MIB,
        "The audit log is renamed to FILE.1 at this size, and the older ones up to FILE.9; the oldest one is deleted.",
        unit="bytes",
        low=4096,
        high=1024 * MIB,
    )
    sql_memory_bytes: int = setting(
        0,
        "Memory that the statements, caches and transactions of all databases of the node may have in SQLite. A statement that needs more "
        "fails with 53200. 0 is an eighth of the machine's memory, or of the container's, and 256 MiB at least.",
        unit="bytes",
        low=0,
        high=2**50,
    )
    slow_statement_s: float = setting(
        0.0,
        "Statements that take this time or longer are traced as sql.slow_statement, without their constants and parameters. 0 traces none.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    writer_wait_s: float = setting(10.0, "Maximum wait of a transaction for other writers.", unit="seconds", low=0.01, high=3600)
    transaction_idle_s: float = setting(
        5.0,
        "A writing transaction whose client is idle for this time is ended, because all other writers wait for it.",
        unit="seconds",
        low=0.01,
        high=600,
    )
    transaction_limit_s: float = setting(
        60.0, "Maximum duration of a writing transaction. A longer one is ended.", unit="seconds", low=0.01, high=3600
    )
    transaction_bytes: int = setting(
        1024**3,
        "Maximum size of a transaction's changes in the log. Those of a large one are spooled to temporary files while it runs.",
        unit="bytes",
        low=64 * 1024,
        high=64 * 1024**3,
    )
    clock_rate_error: float = setting(
        0.01,
        "Maximum relative error of the rate of a node's clock. A new leader waits longer than the lease of the database by this share.",
        low=0.0,
        high=0.5,
    )
    queue_limit: int = setting(
        10_000, "Maximum number of single statements that wait to be written.", unit="statements", low=1, high=1_000_000
    )
    batch_limit: int = setting(1000, "Maximum number of single statements in one log entry.", unit="statements", low=1, high=100_000)
    reader_connections: int = setting(
        64, "Maximum number of concurrent reading statements and snapshots of one database.", unit="connections", low=1, high=1000
    )
    reader_threads: int = setting(
        2, "Maximum number of reading statements of one database that run at a time.", unit="statements", low=1, high=64
    )
    shared_writer_threads: int = setting(
        16, "Threads that write and apply, shared by all databases of the node.", unit="threads", low=1, high=1000
    )
    shared_reader_threads: int = setting(
        16, "Threads that run reading statements, shared by all databases of the node.", unit="threads", low=1, high=1000
    )
    shared_examiner_threads: int = setting(
        2, "Threads that prepare statements, shared by all databases of the node.", unit="threads", low=1, high=1000
    )
    reader_wait_s: float = setting(10.0, "Maximum wait of a reader for a free connection.", unit="seconds", low=0.01, high=3600)
    read_level_wait_s: float = setting(
        5.0,
        "Maximum wait of a read at level session or bounded until the copy is recent enough. It fails with 55P03 afterwards.",
        unit="seconds",
        low=0.01,
        high=3600,
    )
    request_keep_s: float = setting(
        86_400.0,
        "Time that the results of request ids and the ids of transactions are kept, by the log's time. Copies follow the leader's setting.",
        unit="seconds",
        low=1,
        high=31_536_000,
    )
    request_limit: int = setting(
        10_000_000,
        "Maximum number of results of request ids kept at a time. A leader refuses further ones.",
        unit="requests",
        low=1,
        high=1_000_000_000,
    )
    request_size_bytes: int = setting(
        4096 * MIB,
        "Maximum size of the results kept. Beyond it a leader records that a request ran, but not the rows it returned.",
        unit="bytes",
        low=0,
        high=1024 * 1024 * MIB,
    )
    undated_request_limit: int = setting(
        10_000_000,
        "Maximum number of request ids without a time that a database ever accepts, because each is recorded permanently.",
        unit="requests",
        low=0,
        high=1_000_000_000,
    )
    read_idle_s: float = setting(
        60.0,
        "A reading transaction or an open result whose client is idle for this time is ended.",
        unit="seconds",
        low=0.05,
        high=86_400,
    )
    snapshot_limit_s: float = setting(
        3600.0,
        "Maximum age of a reading statement or of a transaction's snapshot. An older one is ended.",
        unit="seconds",
        low=0.05,
        high=604_800,
    )
    wal_limit_bytes: int = setting(
        256 * MIB,
        "If the write-ahead log that waits for a checkpoint exceeds this size, the oldest snapshot is ended.",
        unit="bytes",
        low=64 * 1024,
        high=1024 * 1024 * MIB,
    )
    apply_entries: int = setting(
        64, "Maximum number of log entries that a follower applies in one local commit.", unit="entries", low=1, high=10_000
    )
    apply_size_bytes: int = setting(
        4 * MIB, "A follower commits after applying entries of this size.", unit="bytes", low=1024, high=1024 * MIB
    )
    snapshot_log_bytes: int = setting(
        256 * MIB,
        "A snapshot of a database is made when its log has grown by this much since the newest one. The log is then truncated up to the "
        "older of the last two. 0 makes snapshots on request only and keeps the whole log.",
        unit="bytes",
        low=0,
        high=2**50,
    )
    snapshot_interval_s: float = setting(600.0, "Minimum interval between snapshots of one database.", unit="seconds", low=0, high=1e9)
    snapshot_keep_log_s: float = setting(
        0.0,
        "Records younger than this stay in a database's log, even behind snapshots, for readers of changes that are offline at times.",
        unit="seconds",
        low=0,
        high=1e9,
    )
    snapshot_turn_s: float = setting(
        60.0,
        "Followers make snapshots in turns, by name, the leader last. A node leaves a due snapshot to each node before it for this time.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    snapshot_rate_bytes_per_s: int = setting(
        64 * MIB,
        "Maximum rate of copying, sending and reading a snapshot. 0 sets no limit.",
        unit="bytes per second",
        low=0,
        high=2**40,
    )
    snapshot_wal_limit_bytes: int = setting(
        1024 * MIB,
        "A snapshot is abandoned if the local write-ahead log, which cannot be reset during the copy, grows by more than this.",
        unit="bytes",
        low=MIB,
        high=2**40,
    )
    past_copies: int = setting(
        4,
        "Upper bound on the databases as they were that a node holds for triplicate.as_of and AS OF, each a file in its directory. "
        "0: the past cannot be read here.",
        unit="copies",
        low=0,
        high=1000,
    )
    past_copies_bytes: int = setting(
        16 * 1024 * MIB, "Upper bound on the size of these copies together.", unit="bytes", low=MIB, high=2**50
    )
    past_copy_wait_s: float = setting(
        60.0,
        "How long SET triplicate.as_of, or a query with AS OF, waits for a copy. After it the copy is still built; try again.",
        unit="seconds",
        low=0.1,
        high=86400,
    )
    election_delay_s: float = setting(
        0.15, "Delay of a candidate in favour of others that have applied more.", unit="seconds", low=0, high=60
    )
    peer_probe_interval_s: float = setting(
        0.2,
        "Interval at which a follower probes the leader's address. If connections are refused after it was reached before, the leader's "
        "process has ended, and another node takes over at once. 0 waits for the end of the leader's metadata session.",
        unit="seconds",
        low=0,
        high=60,
    )
    silent_leader_limit_s: float = setting(
        1.0,
        "A leader that answered a follower before and then leaves its probes unanswered for this time is replaced, as after a stopped "
        "process, a power failure or a cut network. A leader that has answered late in the last minute has up to three times as long. "
        "Must exceed any pause of a busy node. 0 waits for the end of its metadata session.",
        unit="seconds",
        low=0,
        high=3600,
    )
    handover_limit_s: float = setting(
        5.0,
        "A leader that gives way to another node waits this long for the transaction that holds the writer, and then ends it with 57P01. "
        "Should be shorter than node.writer_wait_s.",
        unit="seconds",
        low=0,
        high=600,
    )
    balance_interval_s: float = setting(
        2.0,
        "Interval at which the elected balancer compares the placement of databases with its plan. It grows to 30 times as long while "
        "there is nothing to do. 0: this node does not stand for the election of the balancer.",
        unit="seconds",
        low=0,
        high=3600,
    )
    balance_settle_s: float = setting(
        10.0,
        "Leaders are evened out only when nodes and leaders have not changed for this time. Leaders on draining nodes move at once.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    absent_node_limit_s: float = setting(
        600.0,
        "A node that does not run for this time loses its copies of databases with a number of copies: other nodes are chosen for them.",
        unit="seconds",
        low=0,
        high=31_536_000,
    )
    report_interval_s: float = setting(1.0, "Interval at which a follower publishes its position.", unit="seconds", low=0.05, high=600)
    retry_first_s: float = setting(0.05, "First delay after a failed read, apply or take-over.", unit="seconds", low=0.001, high=60)
    retry_longest_s: float = setting(2.0, "Maximum of that delay.", unit="seconds", low=0.01, high=600)
    restart_first_s: float = setting(
        0.5, "First delay before a failed or diverged copy is opened again.", unit="seconds", low=0.01, high=600
    )
    restart_longest_s: float = setting(60.0, "Maximum of that delay.", unit="seconds", low=0.01, high=86_400)
    copies_kept: int = setting(
        2,
        "Number of damaged or wrong copies of each database that are kept after another copy replaced them.",
        unit="copies",
        low=1,
        high=100,
    )
    name_wait_s: float = setting(
        15.0,
        "Maximum wait at the start for another node's registration with the same node_id to end, as after a crash.",
        unit="seconds",
        low=0,
        high=600,
    )
    dropped_keep_s: float = setting(
        86_400.0, "Time that the log of a dropped database is kept for an undelete.", unit="seconds", low=0, high=31_536_000
    )
