"""Optional fields of a version-3 read are written with a default, so every read is a long poll to the bookie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.wire import ReadRequest
from triplicate.wire import bookkeeper_protocol_pb2 as pb
from triplicate.wire.v3 import requests

TESTS = [
    "tests/unit/wire/test_v3.py::test_a_plain_read_carries_nothing_but_its_ids",
    "tests/golden/test_protocol_v3.py::test_v3_requests_are_encoded_and_decoded",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    operation, right = requests._REQUEST_WRITERS[ReadRequest]

    def eager(message: pb.Request, request: ReadRequest) -> None:
        right(message, request if request.fence else replace(request, previous_lac=request.previous_lac or 0))

    patch(requests, "_REQUEST_WRITERS", {**requests._REQUEST_WRITERS, ReadRequest: (operation, eager)})
