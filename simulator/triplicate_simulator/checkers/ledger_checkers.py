"""The checkers of ledgers, by name."""

from __future__ import annotations

from triplicate_simulator.checkers.hedge_rules import hedging_keeps_its_budget
from triplicate_simulator.checkers.history import Checker
from triplicate_simulator.checkers.ledger_invariants import (
    clients_and_metadata_agree,
    closed_entries_have_their_copies,
    confirmed_is_acknowledged,
    metadata_is_well_formed,
    metadata_moves_forward,
    read_order_is_write_order,
)
from triplicate_simulator.checkers.ledger_promises import (
    acknowledged_in_order,
    acknowledged_is_readable,
    read_stays_readable,
    same_order_for_all,
)
from triplicate_simulator.checkers.storage_promises import replaced_bookies_deny_nothing, undeleted_ledgers_are_whole

LEDGER_CHECKERS: dict[str, Checker] = {
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
        hedging_keeps_its_budget,
    )
}
"""The judges of ledgers, by name."""
