"""An error of deleting the owner's node replaces the cancellation of a take-over, so a database node that is stopped runs on."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import LogFenced
from triplicate.log.store import ownership

TESTS = [
    "tests/unit/log/test_logs_take_over.py::test_a_take_over_that_is_cancelled_without_the_metadata_ends_as_cancelled",
    "tests/unit/log/publishing/test_publication_interrupted.py::test_a_publish_that_is_cancelled_without_the_metadata_ends_as_cancelled",
    "tests/simulation/test_found_in_databases.py::test_a_node_that_is_stopped_during_a_take_over_without_the_metadata_ends",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ownership, "TriplicateError", LogFenced)
