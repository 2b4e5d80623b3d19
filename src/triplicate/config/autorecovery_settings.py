"""Settings of auto-recovery: how lost copies are found and made again."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class AutorecoverySettings:
    """Section ``autorecovery``: how a process finds ledgers that lack copies, and copies their entries."""

    bytes_per_s: int = setting(
        64 * MIB,
        "Maximum rate at which one process copies entries, so that readers and writers keep most of the disks and of the network. 0 "
        "sets no limit.",
        unit="bytes",
        low=0,
        high=1024 * 1024 * MIB,
        bookkeeper="replicationRateByBytes",
    )
    open_ledger_grace_s: float = setting(
        30.0,
        "Time without any change after which the writer of an open ledger is held to be gone, if a lost bookie is in the ledger's last "
        "segment. Then the ledger is fenced, recovered and repaired.",
        unit="seconds",
        low=0,
        high=86_400,
        bookkeeper="openLedgerRereplicationGracePeriod",
    )
    ledgers_at_once: int = setting(4, "Maximum number of ledgers that one process repairs at a time.", unit="ledgers", low=1, high=1000)
    window_entries: int = setting(
        1000,
        "Maximum number of entries of one ledger that are copied at a time. The target bookie syncs those that arrive together once.",
        unit="entries",
        low=1,
        high=10_000,
        bookkeeper="rereplicationEntryBatchSize",
    )
    window_bytes: int = setting(
        8 * MIB,
        "Maximum size of the entries of one ledger that are copied at a time. One larger entry is copied alone.",
        unit="bytes",
        low=KIB,
        high=1024 * MIB,
    )
    in_bookie: bool = setting(
        False,
        "Whether the process of a bookie also runs the daemon of auto-recovery. `triplicate up` sets it for the bookies of new clusters.",
        bookkeeper="autoRecoveryDaemonEnabled",
    )
    lost_bookie_delay_s: int = setting(
        60,
        "Time after which the copies of a lost bookie are made again. It is the initial value for a new cluster; afterwards "
        "`triplicate cluster autorecovery delay` changes the value in the metadata, which auditors follow at once.",
        unit="seconds",
        low=0,
        high=86_400 * 30,
        bookkeeper="lostBookieRecoveryDelay",
    )
    busy_share: float = setting(
        0.5,
        "Share of the time in which the daemon copies and checks entries. In the rest of each second the disks serve only others.",
        low=0.01,
        high=1,
    )
    bookies_check_interval_s: int = setting(
        86_400,
        "Time between two searches of the auditor for lost bookies that ledgers still name. The first follows its election.",
        unit="seconds",
        low=60,
        high=86_400 * 365,
        bookkeeper="auditorPeriodicBookieCheckInterval",
    )
    ledgers_check_interval_s: int = setting(
        86_400 * 7,
        "Time between two checks of the first and last entry of every fragment of every ledger. 0: none.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
        bookkeeper="auditorPeriodicCheckInterval",
    )
    replicas_check_interval_s: int = setting(
        86_400 * 7,
        "Time between two checks of all copies of every ledger by the lists of entries of its bookies. 0: none.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
        bookkeeper="auditorPeriodicReplicasCheckInterval",
    )
    placement_check_interval_s: int = setting(
        86_400,
        "Time between two checks of the placement of every ledger. 0: none.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
        bookkeeper="auditorPeriodicPlacementPolicyCheckInterval",
    )
    refill_wait_s: float = setting(
        120.0,
        "Maximum time without progress that the refill of a bookie waits for ledgers that other workers repair, and for entries of living "
        "writers. The next refill goes on.",
        unit="seconds",
        low=0,
        high=86_400,
    )
    move_misplaced: bool = setting(
        False,
        "Whether the auditor marks ledgers whose copies should be on other machines, racks or regions, so that workers move them. "
        "`triplicate cluster recover --misplaced` moves them by hand. Processes of auto-recovery need one placement_policy for it.",
        bookkeeper="repairedPlacementPolicyNotAdheringBookieEnable",
    )
    unneeded_copies_wait_s: float = setting(
        86_400.0,
        "Time between two searches of a bookie for its copies that no closed ledger needs any more, since other bookies have them: it was "
        "lost for a while, or a ledger was moved. A copy is deleted if two searches find it unneeded and unchanged. 0: none.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
        bookkeeper="gcOverreplicatedLedgerWaitTime",
    )
    log_copies_interval_s: int = setting(
        600,
        "Time between two rounds in which the auditor raises segments of logs that were written with fewer copies. 0: none.",
        unit="seconds",
        low=0,
        high=86_400 * 365,
    )
