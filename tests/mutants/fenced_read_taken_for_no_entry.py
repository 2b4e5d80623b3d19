"""A reader treats a "fenced" answer as "no such entry"."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/client/connection/test_response_errors.py::test_only_an_explicit_negative_of_every_replica_denies_an_entry",
    "tests/unit/client/connection/test_response_errors.py::test_only_an_explicit_negative_counts_towards_coverage",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read import batch_read, lac_read, range_read
    from triplicate.wire import Status

    for module in (batch_read, lac_read, range_read):
        patch(module, "EXPLICIT_NEGATIVES", (Status.NO_ENTRY, Status.NO_LEDGER, Status.FENCED))
