"""Settings of logs: those that every log keeps in its head, and those of a process that uses logs."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How one log is stored; kept in its head, so every writer of the log uses the same."""

    ensemble_size: int = setting(3, "Bookies that one segment is spread over.", unit="bookies", low=1, high=1000)
    write_quorum: int = setting(3, "Copies of each entry.", unit="bookies", low=1, high=1000)
    ack_quorum: int = setting(2, "Copies on disk before an entry is acknowledged.", unit="bookies", low=1, high=1000)
    roll_size_bytes: int = setting(256 * MIB, "A segment of this size is closed and the next is opened.", unit="bytes", low=KIB, high=2**40)
    roll_age_s: float = setting(7200.0, "A segment of this age is closed and the next is opened.", unit="seconds", low=0.05, high=1e9)
    retain_age_s: float = setting(
        0.0,
        "Segments older than this are deleted; looked for at rolls, after publishes and by the janitor. 0 keeps them.",
        unit="seconds",
        low=0,
        high=1e10,
    )
    retain_size_bytes: int = setting(
        0, "The oldest segments beyond this sum of sizes are deleted, at the same times; 0 keeps them.", unit="bytes", low=0, high=2**60
    )
    compression: str = setting(
        "auto", "How entries are compressed; auto is zstd where it saves an eighth.", choices=("auto", "none", "zlib", "zstd")
    )


@dataclass(frozen=True, slots=True)
class LogClientSettings:
    """How a process writes and reads logs."""

    ledger_password: str = setting(
        "", "Password of all ledgers of logs; the same in the whole cluster. Stored in clear in the metadata: a label, not a secret."
    )
    entry_target_bytes: int = setting(MIB, "Batched records are sent when an entry reaches this size.", unit="bytes", low=KIB, high=3 * MIB)
    linger_s: float = setting(
        0.002, "How long a batch waits for more records while earlier entries are on their way.", unit="seconds", low=0, high=10
    )
    window_entries: int = setting(1000, "Entries of one log writer that may be unacknowledged.", unit="entries", low=1, high=1_000_000)
    window_bytes: int = setting(32 * MIB, "Bytes of one log writer that may be unacknowledged.", unit="bytes", low=KIB, high=4096 * MIB)
    staging_window_entries: int = setting(
        64, "Entries of one staging ledger that may be unacknowledged.", unit="entries", low=1, high=1_000_000
    )
    staging_window_bytes: int = setting(
        16 * MIB, "Bytes of one staging ledger that may be unacknowledged.", unit="bytes", low=KIB, high=4096 * MIB
    )
    idle_noop_delay_s: float = setting(
        0.0005, "An idle writer makes its last record readable after this time.", unit="seconds", low=0, high=10
    )
    owner_grace_s: float = setting(
        2.0,
        "How long whoever must not disturb a living writer waits before giving up: a writer that was killed counts as alive until its "
        "session is found dead.",
        unit="seconds",
        low=0,
        high=3600,
    )
    publish_wait_s: float = setting(
        30.0,
        "How long a publish waits for the living writer of the log, which lists what is published at its next roll, before it is refused.",
        unit="seconds",
        low=0,
        high=3600,
    )
    take_over_attempts: int = setting(20, "How often a take-over that lost a race starts over.", unit="attempts", low=1, high=1000)
    change_attempts: int = setting(
        50, "How often another change of the head is made again after a lost race.", unit="attempts", low=1, high=1000
    )
    repair_timeout_s: float = setting(
        30.0,
        "How long a writer tries to get past a failed segment before it gives up; its appends wait meanwhile.",
        unit="seconds",
        low=0.01,
        high=3600,
    )
    reduced_retry_s: float = setting(
        5.0,
        "How often the writer of a segment that was created while bookies were short tries to go on in one with all copies.",
        unit="seconds",
        low=0.05,
        high=3600,
    )
    rewrite_bytes_per_s: int = setting(
        32 * MIB, "How fast segments are rewritten, to raise their copies or to merge them.", unit="bytes per second", low=KIB, high=2**40
    )
    merge_below_bytes: int = setting(
        16 * MIB, "Neighbouring closed segments smaller than this are merged.", unit="bytes", low=0, high=2**40
    )
    merge_target_bytes: int = setting(128 * MIB, "No merged segment is larger than this.", unit="bytes", low=KIB, high=2**40)
    merge_after_s: float = setting(600.0, "Segments are merged when their last entry is this old.", unit="seconds", low=0, high=1e9)
    read_ahead_entries: int = setting(32, "Entries that a reader of closed segments asks for at once.", unit="entries", low=1, high=10_000)
    behind_timeout_s: float = setting(
        10.0,
        "How long a reader of planned records waits for bookies that know less than those asked for the plan.",
        unit="seconds",
        low=0,
        high=3600,
    )
    page_cache_entries: int = setting(256, "Pages of segment lists kept in memory.", unit="pages", low=1, high=100_000)
    page_sweep_age_s: float = setting(3600.0, "Pages without a reference are deleted at this age.", unit="seconds", low=0, high=1e9)
    publishers_kept: int = setting(
        10_000,
        "Publishers of one log whose last batches are kept with their offsets, however long they are idle.",
        unit="publishers",
        low=0,
        high=100_000,
    )
    publisher_idle_s: float = setting(
        30 * 86400.0,
        "Of more publishers than are kept, those that published nothing for this time are reduced to the number of their last batch.",
        unit="seconds",
        low=60,
        high=1e10,
    )
    janitor_interval_s: float = setting(
        600.0,
        "How often a database node looks through the logs of the cluster for what is to be deleted; one node of all does it each time. "
        "0: never.",
        unit="seconds",
        low=0,
        high=1e9,
    )
    janitor_pause_s: float = setting(
        0.005, "How long the janitor rests after each log and each ledger that it looks at.", unit="seconds", low=0, high=60
    )
    orphan_grace_s: float = setting(
        3600.0,
        "Ledgers made for a log that no log lists are deleted at this age, by the metadata store's clock.",
        unit="seconds",
        low=0,
        high=1e9,
    )
    staging_grace_s: float = setting(
        86400.0,
        "Staging ledgers that were not published, and snapshots that were not listed, are deleted when they have not changed for this "
        "time: longer than any job takes from its first sealed ledger to its commit, or a database to be sent and read back.",
        unit="seconds",
        low=0,
        high=1e9,
    )
