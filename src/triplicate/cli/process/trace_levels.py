"""The log level of each trace, so that `process.log_level` and alerts depend on its meaning.

error: something is lost, damaged or out of service until an operator acts.
warning: something failed and is tried again, or continues with fewer resources than it should have.
info: everything else, also every name that is not in these tables.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

ERRORS = frozenset(
    [
        "autorecovery.failed",
        "bookie.compaction_met_damage",
        "bookie.damaged_read",
        "bookie.damaged_run_not_listed",
        "bookie.disks_full",
        "bookie.entry_log_damaged",
        "bookie.entry_log_header_damaged",
        "bookie.entry_log_unreadable",
        "bookie.entry_logs_missing",
        "bookie.failed",
        "bookie.flush_without_space",
        "bookie.footer_damaged",
        "bookie.journal_without_space",
        "bookie.last_entry_unreadable",
        "bookie.ledger_unreadable",
        "bookie.scrub_found_damage",
        "bookie.scrub_index_fault",
        "bookie.scrub_report_refused",
        "log.key_missing",
        "node.copy_given_up",
        "node.copy_set_aside",
        "node.failed",
        "replica.diverged",
        "replica.snapshot_damaged",
    ]
)

WARNINGS = frozenset(
    [
        "autorecovery.absences_unreadable",
        "autorecovery.bookies_lost",
        "autorecovery.check_time_in_future",
        "autorecovery.check_time_unreadable",
        "autorecovery.damage_unreadable",
        "autorecovery.delay_unreadable",
        "autorecovery.little_disk",
        "autorecovery.refill_refused",
        "autorecovery.repair_failed",
        "autorecovery.target_failed",
        "autorecovery.target_lost_its_disks",
        "autorecovery.task_failed",
        "autorecovery.unneeded_copies_put_off",
        "bookie.add_too_large",
        "bookie.compaction_lacks_room",
        "bookie.compaction_put_off",
        "bookie.connection_dropped",
        "bookie.digest_mismatch",
        "bookie.digest_unknown",
        "bookie.directory_passed_over",
        "bookie.disk_check_failed",
        "bookie.disks_nearly_full",
        "bookie.entries_may_be_missing",
        "bookie.entry_log_discarded",
        "bookie.entry_log_ends_early",
        "bookie.gc_put_off",
        "bookie.incarnation_unknown",
        "bookie.index_rebuild",
        "bookie.index_taken_back",
        "bookie.lac_record_mismatch",
        "bookie.left_for_lack_of_space",
        "bookie.list_too_long",
        "bookie.login_refused",
        "bookie.machine_not_recorded",
        "bookie.metadata_unreachable",
        "bookie.protocol_error",
        "bookie.registration_failed",
        "bookie.request_refused",
        "bookie.reserve_released",
        "bookie.scrub_put_off",
        "bookie.scrub_state_unreadable",
        "bookie.scrub_state_without_space",
        "bookie.session_expired",
        "bookie.task_failed",
        "bookie.trash_not_understood",
        "bookie.unregister_failed",
        "bookie.upkeep_not_answered",
        "bookie.upkeep_requests_unknown",
        "bookie.withdrawal_failed",
        "client.bookie_failed",
        "client.bookie_quarantined",
        "client.bookie_replaced",
        "client.bookies_missing",
        "client.bookies_unknown",
        "client.connect_failed",
        "client.connection_lost",
        "client.departures_not_read",
        "client.digest_mismatch",
        "client.distances_unknown",
        "client.free_disk_unknown",
        "autorecovery.progress_not_recorded",
        "client.ledger_not_marked",
        "client.marks_postponed",
        "client.length_not_known",
        "client.location_not_used",
        "client.locations_unknown",
        "client.machine_unknown",
        "client.metadata_away",
        "client.placement_incomplete",
        "client.placement_script_failed",
        "client.protocol_error",
        "client.recovery_waits",
        "client.trash_not_emptied",
        "client.writer_failed",
        "kv.leftover",
        "kv.mark_failed",
        "log.consumer_owner_not_kept",
        "log.copies_not_raised",
        "log.discard_refused",
        "log.janitor_failed",
        "log.head_unreadable",
        "log.list_unreadable",
        "log.metadata_unreadable",
        "log.not_fenced",
        "log.orphan",
        "log.orphan_left",
        "log.owner_not_kept",
        "log.producers_uncertain",
        "log.reduced",
        "log.release_failed",
        "log.request_left",
        "log.request_refused",
        "log.request_unreadable",
        "log.requests_not_read",
        "log.rewrite_failed",
        "log.rewrite_postponed",
        "log.roll_failed",
        "log.roll_postponed",
        "log.segment_broken",
        "log.take_over_lost",
        "log.tidy_failed",
        "log.trash_unreadable",
        "log.writer_failed",
        "metadata.access_refused",
        "metadata.connection_lost",
        "metadata.heartbeat_failed",
        "metadata.password_refused",
        "metadata.replication_lock_left",
        "metadata.session_expired",
        "metadata.session_left_behind",
        "metadata.unreadable_registration",
        "metadata.watch_not_armed",
        "node.copy_failed",
        "node.copy_not_set_aside",
        "node.copy_stays",
        "node.database_not_hosted",
        "node.handover_not_withdrawn",
        "node.leader_not_moved",
        "node.leader_unreadable",
        "node.name_is_taken",
        "node.not_purged",
        "node.not_registered",
        "node.role_unusable",
        "node.retry",
        "node.store_not_hosted",
        "node.waits_for_metadata",
        "node.waits_for_name",
        "process.loop_stalled",
        "replica.fenced",
        "replica.give_up",
        "replica.leader_not_deposed",
        "replica.not_handed_over",
        "replica.peer_not_probed",
        "replica.resign",
        "replica.retry",
        "replica.snapshot_failed",
        "replica.snapshot_not_loaded",
        "replica.snapshots_unreadable",
        "replica.too_few_bookies",
        "security.certificate_not_renewed",
        "security.tokens_not_renewed",
        "security.users_not_renewed",
        "sql.backup_not_recorded",
        "sql.past_copy_failed",
        "sql.past_copy_without_near",
        "sql.past_copy_without_snapshot",
        "sql.end_unknown",
        "sql.log_not_deleted",
        "sql.mark_failed",
        "sql.reader_not_closed",
    ]
)

INFOS = frozenset(
    [
        "bookie.fenced",  # A recovery or a take-over did its work.
        "bookie.ledgers_not_in_trash",  # Another client deleted them, for good.
        "bookie.ledgers_missing",  # Garbage collection found ledgers that were deleted.
        "bookie.torn_tail",  # Only entries that a killed bookie had not acknowledged.
        "client.batch_read_refused",  # A bookie of another release; entries are read one at a time.
        "pages.refused",  # A reader of the metrics without TLS or the token; a metric counts them.
        "metadata.replication_lock_lost",  # A session ended; another worker repairs the ledger.
    ]
)
"""Names of normal events that sound like problems."""

WELL = {"metadata.connection": ("state", "connected")}
"""Traces of a state: the fact with the state, and its normal value. Any other value is a warning."""


def level_of(kind: str, facts: Mapping[str, object]) -> int:
    """The level of the standard logging module for a trace."""
    if kind in ERRORS:
        return logging.ERROR
    if kind in WARNINGS:
        return logging.WARNING
    if kind in WELL:
        fact, well = WELL[kind]
        return logging.INFO if facts.get(fact) == well else logging.WARNING
    return logging.INFO
