"""A publisher that gives up does not withdraw its request, which the writer serves later."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/publishing/test_request_server.py::test_a_writer_that_does_not_answer_is_named_after_the_wait",
    "tests/unit/log/publishing/test_request_server.py::test_an_interrupted_publisher_leaves_no_request",
    "tests/unit/log/publishing/test_publication_interrupted.py::test_a_publish_interrupted_at_any_step_is_listed_once[late-writer]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing.request_queue import RequestQueue

    async def leave(self: RequestQueue, token: str) -> None:
        return

    patch(RequestQueue, "withdraw", leave)
