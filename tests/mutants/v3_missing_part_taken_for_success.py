"""An answer of version 3 with status OK but without the operation's own part counts as success."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.wire import Status
from triplicate.wire.v3 import responses

TESTS = ["tests/unit/wire/test_v3.py::test_an_answer_without_its_part_keeps_a_failure_and_proves_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def trusting(make: Callable[[Status], Any]) -> Callable[[Status], Any]:
        return lambda status: make(Status.OK if status is Status.IO_ERROR else status)

    patch(responses, "_WITHOUT_PART", {operation: trusting(make) for operation, make in responses._WITHOUT_PART.items()})
