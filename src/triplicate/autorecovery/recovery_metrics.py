"""The metrics of replication workers. Those with the meaning of a metric of Apache BookKeeper's workers have its name."""

from __future__ import annotations

from triplicate.runtime import Metrics


class RecoveryMetrics:
    """Counters of one process that repairs ledgers.

    Args:
        metrics: the process's registry; None for one that is not exported.
    """

    def __init__(self, metrics: Metrics | None) -> None:
        registry = metrics if metrics is not None else Metrics()
        self.entries_written = registry.tally("replication_worker_NUM_ENTRIES_WRITTEN", "Entries copied to a bookie that lacked them.")
        self.bytes_written = registry.tally("replication_worker_NUM_BYTES_WRITTEN", "Bytes of the entries copied, with their headers.")
        self.bad_copies = registry.counter(
            "replication_worker_bad_copies", "Copies that were not used because their digest failed.", labels=("bookie",)
        )
        self.copies_replaced = registry.counter(
            "replication_worker_copies_replaced", "Damaged or missing copies that were stored again on their bookie."
        )
        self.ledgers_replicated = registry.counter(
            "replication_worker_NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED", "Ledgers of which at least one fragment was repaired."
        )
        self.ledgers_moved = registry.counter(
            "replication_worker_NUM_NOT_ADHERING_PLACEMENT_LEDGERS_REPLICATED",
            "Ledgers of which at least one fragment was moved because of the rules of placement.",
        )
        self.unneeded_copies_deleted = registry.counter(
            "bookie_unneeded_copies_deleted", "Ledgers whose copies on this bookie were deleted because other bookies have all of them."
        )
        self.ledgers_failed = registry.counter("replication_worker_ledgers_failed", "Repairs of ledgers that ended with an error.")
