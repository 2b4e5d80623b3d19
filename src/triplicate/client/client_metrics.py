"""The metrics of a client. Those with the meaning of a metric of Apache BookKeeper's client have its name."""

from __future__ import annotations

from triplicate.runtime import Metrics


class ClientMetrics:
    """Counters and times of one client, updated per batch.

    Args:
        metrics: the process's registry; None for one that is not exported.
    """

    def __init__(self, metrics: Metrics | None) -> None:
        registry = metrics if metrics is not None else Metrics()
        self.add_seconds = registry.distribution(
            "bookkeeper_client_ADD_ENTRY", "Seconds from sending to confirmation; one observation for each batch of entries."
        )
        self.added = registry.tally("bookkeeper_client_ADD_ENTRY_entries", "Entries confirmed.")
        self.added_bytes = registry.tally("bookkeeper_client_ADD_ENTRY_bytes", "Bytes of the entries confirmed, with their headers.")
        self.add_failures = registry.counter("bookkeeper_client_ADD_ENTRY_failed", "Entries whose outcome became unknown.")
        self.read_seconds = registry.distribution("bookkeeper_client_READ_ENTRY", "Seconds of one read of a range of entries.")
        self.read = registry.tally("bookkeeper_client_READ_ENTRY_entries", "Entries read and verified.")
        self.read_bytes = registry.tally("bookkeeper_client_READ_ENTRY_bytes", "Payload bytes read and verified.")
        self.digest_mismatches = registry.counter(
            "bookkeeper_client_READ_ENTRY_digest_mismatches", "Copies whose digest failed; another replica was read.", labels=("bookie",)
        )
        self.speculative_reads = registry.counter(
            "bookkeeper_client_SPECULATIVE_READ_COUNT",
            "Reads sent in addition: after the measured delay (late), after hedge_read_s (silent), or to end a quarantine (probe).",
            labels=("reason",),
        )
        self.reads_by_distance = registry.counter(
            "bookkeeper_client_reads_by_distance",
            "Requests for entries by the distance of the bookie: own_rack, own_region or elsewhere; counted with network_location only.",
            labels=("distance",),
        )
        self.quarantines = registry.counter(
            "bookkeeper_client_BOOKIE_QUARANTINE",
            "Bookies that were put into quarantine because they were slow or failing.",
            labels=("bookie", "reason"),
        )
        self.ensemble_changes = registry.counter("bookkeeper_client_NUM_ENSEMBLE_CHANGE", "Ensembles changed while writing.")
        self.ensembles_chosen = registry.counter(
            "bookkeeper_client_ensembles_chosen",
            "Ensembles chosen, by how well they keep the rules of placement: strict, soft or failed.",
            labels=("adherence",),
        )
        self.bookie_failures = registry.counter("bookkeeper_client_bookie_failures", "Bookies that failed a writer.", labels=("bookie",))
        self.missing_bookies = registry.gauge(
            "bookkeeper_client_missing_bookies",
            "Failed bookies without which a writer continues until they are replaced or answer again.",
        )
        self.waiting_for_domains = registry.sum_gauge(
            "bookkeeper_client_adds_waiting_for_fault_domains",
            "Entries that an ack quorum has acknowledged and that wait for placement_min_ack_domains.",
        )
        self.ledgers_created = registry.counter("bookkeeper_client_LEDGER_CREATE", "Ledgers created.")
        self.ledgers_opened = registry.counter("bookkeeper_client_LEDGER_OPEN", "Ledgers opened for reading.")
        self.ledgers_recovered = registry.counter("bookkeeper_client_LEDGER_RECOVER", "Ledgers recovered and closed.")
        self.ledgers_deleted = registry.counter("bookkeeper_client_LEDGER_DELETE", "Ledgers deleted.")
