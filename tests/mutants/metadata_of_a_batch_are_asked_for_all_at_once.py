"""A publish reads the metadata of all its ledgers at the same time, without a limit."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/publishing/test_request_server.py::test_the_metadata_of_a_batch_are_asked_for_side_by_side_but_not_all_at_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import publication

    patch(publication, "READ_AT_ONCE", 10_000)
