"""A version-3 failure carries the envelope's status alone, which Apache's client cannot attribute to an entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.wire import Status, v3
from triplicate.wire import bookkeeper_protocol_pb2 as pb
from triplicate.wire.v3 import responses

TESTS = [
    "tests/unit/wire/test_v3.py::test_a_failure_carries_its_status_twice_and_its_ids",
    "tests/golden/test_protocol_v3.py::test_v3_responses_are_encoded_and_decoded",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def unless_failed(right: Callable[[pb.Response, Any], None]) -> Callable[[pb.Response, Any], None]:
        def write(message: pb.Response, response: Any) -> None:
            if response.status is Status.OK:
                right(message, response)

        return write

    bare: dict[type, tuple[v3.OperationType, Callable[[pb.Response, Any], None]]] = {
        kind: (operation, unless_failed(write)) for kind, (operation, write) in responses._RESPONSE_WRITERS.items()
    }
    patch(responses, "_RESPONSE_WRITERS", bare)
