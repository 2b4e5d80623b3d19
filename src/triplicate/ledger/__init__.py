"""Ledgers as values and arithmetic: entries, metadata, quorums, placement, and the machines that decide. Pure: no I/O, no clock."""

from triplicate.ledger import ensemble_change, recovery
from triplicate.ledger.absence import Absences
from triplicate.ledger.adv_tracker import LAST_ENTRY_ID, AdvWriteTracker
from triplicate.ledger.availability import Availability, AvailabilityGroup, decode_availability, encode_availability
from triplicate.ledger.bookie_health import Ailment, BookieHealth
from triplicate.ledger.domain_trackers import AdvDomainWriteTracker, DomainWriteTracker
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
from triplicate.ledger.hedging import LEAST_DELAY_S, HedgeBudget, HedgeDelays, ReadKind, kind_of_batch
from triplicate.ledger.held_window import HeldWindow, holder_of, is_replaceable
from triplicate.ledger.last_confirmed import LastConfirmed
from triplicate.ledger.ledger_metadata import EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.ledger.metadata_format import decode_metadata, encode_metadata
from triplicate.ledger.placement.ack_domains import AckDomains, FaultDomain
from triplicate.ledger.placement.adherence import Adherence, PlacementVerdict, ensemble_verdict, ledger_verdict
from triplicate.ledger.placement.distance import Distance, distance_between
from triplicate.ledger.placement.ensemble_choice import RandomSource, choose_ensemble, rearrange_bookies, replace_bookies, with_bookies
from triplicate.ledger.placement.mending import CopyMove, EnsembleMend, mend_ensemble, shared_machines
from triplicate.ledger.placement.network_location import DEFAULT_LOCATION, BookieSite, NetworkLocation, parse_location
from triplicate.ledger.placement.placement_rules import PlacementPolicy, PlacementRules
from triplicate.ledger.placement.site_table import RegisteredBookie, SiteTable, resolve_sites
from triplicate.ledger.read_order import ReadOrder
from triplicate.ledger.read_plan import ReadPlan
from triplicate.ledger.schedule import absent_answers_needed, check_quorums, is_covered, is_endangered, write_set, write_sets
from triplicate.ledger.write_tracker import WriteTracker

__all__ = [
    "DEFAULT_LOCATION",
    "ENTRY_HEADER",
    "HEADER_BYTES",
    "LAST_ENTRY_ID",
    "LEAST_DELAY_S",
    "MASTER_KEY_BYTES",
    "Absences",
    "AckDomains",
    "Adherence",
    "AdvDomainWriteTracker",
    "AdvWriteTracker",
    "Ailment",
    "Availability",
    "AvailabilityGroup",
    "BookieHealth",
    "BookieSite",
    "CopyMove",
    "DecodedEntries",
    "DigestType",
    "DigestVerifier",
    "Distance",
    "DomainWriteTracker",
    "EnsembleMend",
    "EnsembleSegment",
    "Entry",
    "EntryCodec",
    "FaultDomain",
    "HedgeBudget",
    "HedgeDelays",
    "HeldWindow",
    "LastConfirmed",
    "LedgerMetadata",
    "LedgerState",
    "NetworkLocation",
    "PlacementPolicy",
    "PlacementRules",
    "PlacementVerdict",
    "RandomSource",
    "ReadKind",
    "ReadOrder",
    "ReadPlan",
    "RegisteredBookie",
    "SiteTable",
    "WriteTracker",
    "absent_answers_needed",
    "check_quorums",
    "choose_ensemble",
    "decode_availability",
    "decode_entries",
    "decode_metadata",
    "derive_master_key",
    "distance_between",
    "encode_availability",
    "encode_metadata",
    "ensemble_change",
    "ensemble_verdict",
    "holder_of",
    "is_covered",
    "is_endangered",
    "is_replaceable",
    "kind_of_batch",
    "ledger_verdict",
    "mend_ensemble",
    "parse_location",
    "rearrange_bookies",
    "recovery",
    "replace_bookies",
    "resolve_sites",
    "shared_machines",
    "with_bookies",
    "write_set",
    "write_sets",
]
