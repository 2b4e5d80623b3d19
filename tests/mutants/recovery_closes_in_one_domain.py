"""A recovery closes its ledger when an ack quorum in one fault domain has the copies, although another domain is there."""

from collections.abc import Callable
from typing import Any

from triplicate.client import ledger_recovery

TESTS = ["tests/unit/client/write/test_ledger_writer_ack_domains.py::test_a_recovery_stores_copies_in_both_racks_before_it_closes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    begin = ledger_recovery._Attempt.__init__

    def without_domains(self: Any, context: Any, ledger_id: Any, metadata: Any, pool: Any, domains: Any) -> None:
        begin(self, context, ledger_id, metadata, pool, None)

    patch(ledger_recovery._Attempt, "__init__", without_domains)
