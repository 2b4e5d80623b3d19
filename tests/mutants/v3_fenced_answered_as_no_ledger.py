"""A fenced add is answered "no ledger" over version 3, so a writer takes a lost race for a deleted ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from triplicate.wire import Response, Status, v3
from triplicate.wire.v3 import responses

TESTS = [
    "tests/golden/test_protocol_v3.py::test_v3_responses_are_encoded_and_decoded",
    "tests/unit/wire/test_v3.py::test_every_status_travels",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = responses.encode_response

    def gone(response: Any, txn_id: int) -> bytes:
        said: Response = replace(response, status=Status.NO_LEDGER) if response.status is Status.FENCED else response
        return right(said, txn_id)

    patch(responses, "encode_response", gone)
    patch(v3, "encode_response", gone)
