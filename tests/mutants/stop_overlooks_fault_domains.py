"""A stop counts as safe after which the entries of an open ledger find too few fault domains to be acknowledged."""

from collections.abc import Callable, Sequence

from triplicate.cli.overview.core import stop_verdict
from triplicate.ledger import PlacementRules

TESTS = [
    "tests/unit/cli/overview/core/test_stop_verdict.py::test_an_open_ledger_needs_its_fault_domains",
    "tests/unit/cli/server_commands/test_safe_to_stop.py::test_a_stop_that_leaves_too_few_machines_is_named",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    class Blind(PlacementRules):
        def ack_domains(self, ensemble: Sequence[str]) -> None:
            return None

    patch(stop_verdict, "PlacementRules", Blind)
