"""A snapshot's content is loaded without comparing it with its digest."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.core.snapshot_format import ContentCheck

TESTS = [
    "tests/unit/log/upkeep/test_log_snapshots.py::test_damaged_content_is_refused[flipped-1]",
    "tests/unit/log/upkeep/test_log_snapshots.py::test_content_that_is_another_than_the_listed_one_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ContentCheck, "trailer", lambda self, payload: None)
