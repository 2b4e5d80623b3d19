"""Settings of logs: those that every log keeps in its head, and those of a process that uses logs."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How one log is stored; kept in its head, so every writer of the log uses the same."""

    ensemble_size: int = setting(3, "Number of bookies over which one segment is spread.", unit="bookies", low=1, high=1000)
    write_quorum: int = setting(3, "Copies of each entry.", unit="bookies", low=1, high=1000)
    ack_quorum: int = setting(2, "Number of copies on disk before an entry is acknowledged.", unit="bookies", low=1, high=1000)
    roll_size_bytes: int = setting(
        256 * MIB, "A segment of this size is closed and the next one is opened.", unit="bytes", low=KIB, high=2**40
    )
    roll_age_s: float = setting(7200.0, "A segment of this age is closed and the next one is opened.", unit="seconds", low=0.05, high=1e9)
    retain_age_s: float = setting(
        0.0,
        "Segments older than this are deleted, at rolls, after publishes and by the janitor, unless its clock and the metadata store's "
        "differ by more than five minutes. 0 keeps them.",
        unit="seconds",
        low=0,
        high=1e10,
    )
    retain_size_bytes: int = setting(
        0, "The oldest segments beyond this total size are deleted, at the same times. 0 keeps them.", unit="bytes", low=0, high=2**60
    )
    compression: str = setting(
        "auto", "Compression of entries. auto uses zstd if it saves at least an eighth.", choices=("auto", "none", "zlib", "zstd")
    )


@dataclass(frozen=True, slots=True)
class LogClientSettings:
    """How a process writes and reads logs."""

    ledger_password: str = setting(
        "",
        "Password of all ledgers of logs, equal in the whole cluster. It is stored in clear text in the metadata: a label, not a secret.",
    )
    keys_file: str = setting(
        "",
        "Path of the file with the keys of encrypted logs, as `triplicate log key new` makes it. Only its owner may read it. A process "
        "that writes or reads no encrypted log needs none.",
    )
    entry_target_bytes: int = setting(MIB, "Batched records are sent when an entry reaches this size.", unit="bytes", low=KIB, high=3 * MIB)
    linger_s: float = setting(
        0.002, "Time that a batch waits for more records while earlier entries are outstanding.", unit="seconds", low=0, high=10
    )
    window_entries: int = setting(
        1000, "Maximum number of unacknowledged entries of one log writer.", unit="entries", low=1, high=1_000_000
    )
    window_bytes: int = setting(
        32 * MIB, "Maximum size of the unacknowledged entries of one log writer.", unit="bytes", low=KIB, high=4096 * MIB
    )
    staging_window_entries: int = setting(
        64, "Maximum number of unacknowledged entries of one staging ledger.", unit="entries", low=1, high=1_000_000
    )
    staging_window_bytes: int = setting(
        16 * MIB, "Maximum size of the unacknowledged entries of one staging ledger.", unit="bytes", low=KIB, high=4096 * MIB
    )
    idle_noop_delay_s: float = setting(
        0.0005, "An idle writer makes its last record readable after this time.", unit="seconds", low=0, high=10
    )
    owner_grace_s: float = setting(
        2.0,
        "Maximum wait of an operation that must not disturb a live writer. A killed writer counts as alive until its session is found "
        "dead.",
        unit="seconds",
        low=0,
        high=3600,
    )
    publish_wait_s: float = setting(
        30.0,
        "Maximum wait of a publish for the live writer of the log, which lists the ledgers at its next roll. After it the publish is "
        "refused.",
        unit="seconds",
        low=0,
        high=3600,
    )
    take_over_attempts: int = setting(20, "Maximum number of attempts of a take-over that loses races.", unit="attempts", low=1, high=1000)
    change_attempts: int = setting(
        50, "Maximum number of attempts of other changes of the head that lose races.", unit="attempts", low=1, high=1000
    )
    repair_timeout_s: float = setting(
        30.0,
        "Maximum time that a writer tries to replace a failed segment. Its appends wait during that time.",
        unit="seconds",
        low=0.01,
        high=3600,
    )
    reduced_retry_s: float = setting(
        5.0,
        "Interval at which the writer of a segment with fewer copies, created while bookies were short, tries to open one with all copies.",
        unit="seconds",
        low=0.05,
        high=3600,
    )
    rewrite_bytes_per_s: int = setting(
        32 * MIB, "Maximum rate of rewriting segments to add copies or to merge them.", unit="bytes per second", low=KIB, high=2**40
    )
    merge_below_bytes: int = setting(
        16 * MIB, "Neighbouring closed segments smaller than this are merged.", unit="bytes", low=0, high=2**40
    )
    merge_target_bytes: int = setting(128 * MIB, "Maximum size of a merged segment.", unit="bytes", low=KIB, high=2**40)
    merge_after_s: float = setting(600.0, "Segments are merged when their last entry has this age.", unit="seconds", low=0, high=1e9)
    read_ahead_entries: int = setting(
        32, "Number of entries that a reader of closed segments requests at once.", unit="entries", low=1, high=10_000
    )
    behind_timeout_s: float = setting(
        10.0,
        "Maximum wait of a reader of planned records for bookies that lag behind those used for the plan.",
        unit="seconds",
        low=0,
        high=3600,
    )
    page_cache_entries: int = setting(256, "Pages of segment lists kept in memory.", unit="pages", low=1, high=100_000)
    page_sweep_age_s: float = setting(3600.0, "Unreferenced pages are deleted at this age.", unit="seconds", low=0, high=1e9)
    publishers_kept: int = setting(
        10_000,
        "Number of publishers of one log whose last batches are kept with their offsets, however long they are idle.",
        unit="publishers",
        low=0,
        high=100_000,
    )
    publisher_idle_s: float = setting(
        30 * 86400.0,
        "If there are more publishers, those idle for this time are reduced to the number of their last batch.",
        unit="seconds",
        low=60,
        high=1e10,
    )
    producer_idle_s: float = setting(
        7 * 86400.0,
        "A log remembers 500 producers. Beyond them, a producer that has not appended for this time, by the log's time, is forgotten for "
        "a new one; if there is none, the new one is refused.",
        unit="seconds",
        low=0,
        high=1e10,
    )
    janitor_interval_s: float = setting(
        600.0,
        "Interval at which a database node checks the logs of the cluster for deletions. One node does it each time. 0 disables this.",
        unit="seconds",
        low=0,
        high=1e9,
    )
    janitor_pause_s: float = setting(0.005, "Pause of the janitor after each log and each ledger.", unit="seconds", low=0, high=60)
    orphan_grace_s: float = setting(
        3600.0,
        "Ledgers created for a log that no log lists are deleted at this age, by the metadata store's clock.",
        unit="seconds",
        low=0,
        high=1e9,
    )
    staging_grace_s: float = setting(
        86400.0,
        "Unpublished staging ledgers and unlisted snapshots are deleted when they have not changed for this time. It must be longer "
        "than a job takes from its first sealed ledger to its commit, and than a database takes to be sent and read back.",
        unit="seconds",
        low=0,
        high=1e9,
    )
