"""A change of a log's head overwrites any version, so a take-over drops segments that it has not fenced."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_logs_take_over.py::test_a_take_over_that_another_one_overtakes_starts_over_and_loses_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.head_store import HeadStore
    from triplicate.metadata import ANY_VERSION

    patch(HeadStore, "expected_version", lambda self, stored: ANY_VERSION)
