"""A force counts the answer of a bookie that restarted and lost entries which it had acknowledged before their sync."""

from collections.abc import Callable

from triplicate.client.write.add_streams import EnsembleStreams

TESTS = [
    "tests/unit/client/write/test_force.py::test_force_does_not_believe_a_bookie_that_was_restarted",
    "tests/unit/client/test_client_histories.py::test_what_was_forced_survives_crashes",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(EnsembleStreams, "losses", lambda self: [])
