"""A client that leaves a message incomplete, or does not read, keeps its connection for ever."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime.progress_watch import ProgressWatch

TESTS = [
    "tests/unit/runtime/test_progress_watch.py::test_without_progress_it_stalls_once_after_the_limit",
    "tests/unit/sql/pg/protocol/test_message_stream.py::test_half_a_message_ends_the_connection_and_an_idle_one_stays",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ProgressWatch, "start", lambda watch: None)
