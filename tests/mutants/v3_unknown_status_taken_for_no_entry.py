"""An unknown version-3 status counts as "no entry", which is an explicit denial."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.wire import Status, status
from triplicate.wire.v3 import responses

TESTS = ["tests/unit/wire/test_v3.py::test_a_status_that_is_unknown_is_no_answer_about_the_entry"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    known = {one.value: one for one in Status}

    def hasty(code: int) -> Status:
        return known.get(code, Status.NO_ENTRY)

    patch(status, "status_from_v3", hasty)
    patch(responses, "status_from_v3", hasty)
