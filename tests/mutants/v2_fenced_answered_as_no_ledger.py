"""A fenced add is answered "no ledger" over version 2, so a writer takes a lost race for a deleted ledger."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.wire import Status, status

TESTS = [
    "tests/golden/test_protocol_vectors.py::test_v2_responses_are_encoded_and_decoded",
    "tests/golden/test_protocol_vectors.py::test_bulk_forms_give_the_same_bytes",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(status, "V2_CODES", {**status.V2_CODES, Status.FENCED: status.V2_CODES[Status.NO_LEDGER]})
