"""A decommission that is refused late withdraws the requests that it made, and leaves its mark on those that were there before."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_decommission.py::test_a_request_that_was_there_before_stays_where_a_decommission_is_refused_late",
    "tests/unit/metadata/test_read_only_requests.py::test_a_change_of_a_request_is_undone_unless_another_followed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.metadata.read_only_requests import ReadOnlyRequests, RequestChange

    undo = ReadOnlyRequests.undo

    async def undo_new(requests: ReadOnlyRequests, bookie_id: str, change: RequestChange) -> None:
        if change.before is None:
            await undo(requests, bookie_id, change)

    patch(ReadOnlyRequests, "undo", undo_new)
