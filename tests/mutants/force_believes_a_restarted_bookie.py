"""A force counts the answer of a bookie that was started anew and has lost what it acknowledged without syncing."""

from collections.abc import Callable

from triplicate.client.adds import LedgerAdds

TESTS = [
    "tests/unit/client/test_force.py::test_force_does_not_believe_a_bookie_that_was_started_anew",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(LedgerAdds, "_count_losses", lambda self: [])
