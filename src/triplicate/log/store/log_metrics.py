"""The metrics of logs, by log."""

from __future__ import annotations

from triplicate.runtime import Metrics


class LogMetrics:
    """Counters and gauges of one log in this process.

    Args:
        metrics: the process's registry; None: a registry that is not served.
        name: of the log, the value of the label ``log``.
    """

    def __init__(self, metrics: Metrics | None, name: str) -> None:
        registry = metrics if metrics is not None else Metrics()
        labels = ("log",)
        self.appended = registry.counter("triplicate_log_records_appended", "Records acknowledged.", labels).labels(name)
        self.entries = registry.counter("triplicate_log_entries_appended", "Entries acknowledged, no-ops among them.", labels).labels(name)
        self.bytes = registry.counter("triplicate_log_bytes_appended", "Bytes of the entries acknowledged, compressed.", labels).labels(
            name
        )
        self.read = registry.counter("triplicate_log_records_read", "Records delivered to readers.", labels).labels(name)
        self.rolls = registry.counter("triplicate_log_rolls", "Segments opened after a writer's first.", labels).labels(name)
        self.repairs = registry.counter("triplicate_log_repairs", "Segments that broke and were recovered by their writer.", labels).labels(
            name
        )
        self.postponed = registry.counter(
            "triplicate_log_rolls_postponed", "Failed attempts to prepare a roll; the segment continues.", labels
        ).labels(name)
        self.reduced = registry.gauge(
            "triplicate_log_reduced", "1 while the open segment has fewer copies than the log asks for, because bookies are short.", labels
        ).labels(name)
        self.take_overs = registry.counter("triplicate_log_take_overs", "Take-overs by this process.", labels).labels(name)
        self.fenced = registry.counter("triplicate_log_fenced", "Writers of this process that lost their log to others.", labels).labels(
            name
        )
        self.rewritten = registry.counter(
            "triplicate_log_segments_rewritten", "Closed segments replaced by new ledgers, to raise their copies or to merge them.", labels
        ).labels(name)
        self.published = registry.counter("triplicate_log_ledgers_published", "Ledgers that became segments by publishing.", labels).labels(
            name
        )
