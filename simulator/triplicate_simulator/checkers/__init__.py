"""The judges of what clients saw. They know nothing of the code that they judge, and each is held to written histories, good and bad."""

from triplicate_simulator.checkers.history import Checker, History, Verdict, judge
from triplicate_simulator.checkers.ledger_invariants import (
    clients_and_metadata_agree,
    closed_entries_have_their_copies,
    confirmed_is_acknowledged,
    metadata_is_well_formed,
    metadata_moves_forward,
    read_order_is_write_order,
)
from triplicate_simulator.checkers.ledger_promises import (
    Acknowledged,
    Confirmed,
    Copy,
    Deleted,
    Denied,
    Ended,
    Event,
    LengthStoodIn,
    MetadataWritten,
    Read,
    Sent,
    Tailed,
    Undeleted,
    Wiped,
    acknowledged_in_order,
    acknowledged_is_readable,
    read_stays_readable,
    same_order_for_all,
)
from triplicate_simulator.checkers.log_rules import LOG_CHECKERS
from triplicate_simulator.checkers.sql_rules import DATABASE_CHECKERS
from triplicate_simulator.checkers.storage_promises import replaced_bookies_deny_nothing, undeleted_ledgers_are_whole

CHECKERS: dict[str, Checker] = {
    check.__name__: check
    for check in (
        acknowledged_is_readable,
        read_stays_readable,
        acknowledged_in_order,
        same_order_for_all,
        metadata_is_well_formed,
        metadata_moves_forward,
        clients_and_metadata_agree,
        closed_entries_have_their_copies,
        read_order_is_write_order,
        confirmed_is_acknowledged,
        replaced_bookies_deny_nothing,
        undeleted_ledgers_are_whole,
    )
}
"""The judges of ledgers, by name."""

BOUNDED = ("registers_are_linearizable",)
"""The judges that search, and give up beyond a bound: they count in `Verdict.undecided` what they did not decide."""

__all__ = [
    "BOUNDED",
    "CHECKERS",
    "DATABASE_CHECKERS",
    "LOG_CHECKERS",
    "Acknowledged",
    "Checker",
    "Confirmed",
    "Copy",
    "Deleted",
    "Denied",
    "Ended",
    "Event",
    "History",
    "LengthStoodIn",
    "MetadataWritten",
    "Read",
    "Sent",
    "Tailed",
    "Undeleted",
    "Verdict",
    "Wiped",
    "judge",
]
