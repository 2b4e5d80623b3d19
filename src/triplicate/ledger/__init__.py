"""Ledgers as values and arithmetic: entries, metadata, quorums, placement, and the machines that decide. Pure: no I/O, no clock."""

from triplicate.ledger import ensemble_change, recovery
from triplicate.ledger.adv_tracker import LAST_ENTRY_ID, AdvWriteTracker
from triplicate.ledger.availability import Availability, AvailabilityGroup, decode_availability, encode_availability
from triplicate.ledger.entry import (
    ENTRY_HEADER,
    HEADER_BYTES,
    MASTER_KEY_BYTES,
    DigestType,
    Entry,
    EntryCodec,
    derive_master_key,
)
from triplicate.ledger.entry_bulk import DecodedEntries, DigestVerifier, decode_entries
from triplicate.ledger.last_confirmed import LastConfirmed
from triplicate.ledger.ledger_metadata import EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.ledger.metadata_format import decode_metadata, encode_metadata
from triplicate.ledger.placement import choose_ensemble, replace_bookies
from triplicate.ledger.read_plan import ReadPlan
from triplicate.ledger.schedule import absent_answers_needed, check_quorums, is_covered, is_endangered, write_set, write_sets
from triplicate.ledger.write_tracker import WriteTracker

__all__ = [
    "ENTRY_HEADER",
    "HEADER_BYTES",
    "LAST_ENTRY_ID",
    "MASTER_KEY_BYTES",
    "AdvWriteTracker",
    "Availability",
    "AvailabilityGroup",
    "DecodedEntries",
    "DigestType",
    "DigestVerifier",
    "EnsembleSegment",
    "Entry",
    "EntryCodec",
    "LastConfirmed",
    "LedgerMetadata",
    "LedgerState",
    "ReadPlan",
    "WriteTracker",
    "absent_answers_needed",
    "check_quorums",
    "choose_ensemble",
    "decode_availability",
    "decode_entries",
    "decode_metadata",
    "derive_master_key",
    "encode_availability",
    "encode_metadata",
    "ensemble_change",
    "is_covered",
    "is_endangered",
    "recovery",
    "replace_bookies",
    "write_set",
    "write_sets",
]
