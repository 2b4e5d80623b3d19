"""The metrics of the auditor. Those with the meaning of a metric of Apache BookKeeper's auditor have its name."""

from __future__ import annotations

from triplicate.runtime import Metrics


class AuditorMetrics:
    """Counters and gauges of one process that audits ledgers.

    Args:
        metrics: the process's registry; None for one that is not exported.
    """

    def __init__(self, metrics: Metrics | None) -> None:
        registry = metrics if metrics is not None else Metrics()
        self.is_auditor = registry.gauge("auditor_is_elected", "1 while this process is the auditor.")
        self.elections = registry.counter("auditor_election_attempts", "Elections in which this process was a candidate.")
        self.lost_bookies = registry.gauge("auditor_lost_bookies", "Lost bookies that wait for their audit.")
        self.marked_now = registry.gauge(
            "triplicate_underreplicated_ledgers", "Ledgers that are marked as under-replicated, as the auditor has counted them."
        )
        self.oldest_mark_s = registry.gauge(
            "triplicate_underreplicated_oldest_seconds", "Age of the oldest mark of an under-replicated ledger at that time; 0 without one."
        )
        self.delayed = registry.counter("auditor_NUM_BOOKIE_AUDITS_DELAYED", "Lost bookies whose audit was delayed.")
        self.cancelled = registry.counter("auditor_NUM_DELAYED_BOOKIE_AUDITS_CANCELLED", "Lost bookies that returned before their audit.")
        self.marked = registry.counter(
            "auditor_ledgers_marked", "Ledgers that this process marked as under-replicated, by audit.", ("audit",)
        )
        self.seconds = registry.gauge("auditor_audit_seconds", "Duration of the last audit of this process, by audit.", ("audit",))
        self.checked = registry.counter("auditor_NUM_LEDGERS_CHECKED", "Ledgers that periodic checks examined.")
        self.unexamined = registry.gauge("auditor_ledgers_unexamined", "Ledgers that the last audit could not examine.", ("audit",))
        self.misplaced = registry.gauge(
            "auditor_NUM_LEDGERS_NOT_ADHERING_TO_PLACEMENT_POLICY", "Ledgers that break a rule of placement, by the last check."
        )
        self.softly_placed = registry.gauge(
            "auditor_NUM_LEDGERS_SOFTLY_ADHERING_TO_PLACEMENT_POLICY", "Ledgers that miss a preferred rule of placement, by the last check."
        )
        self.without_copy = registry.gauge(
            "auditor_NUM_LEDGERS_HAVING_NO_REPLICA_OF_AN_ENTRY", "Ledgers with an entry of which no list has a copy, by the last check."
        )
        self.failures = registry.counter(
            "autorecovery_task_failures", "Failures of tasks of auto-recovery, which then began again.", ("task",)
        )
