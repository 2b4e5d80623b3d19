"""A store takes keys and values of any type: the leader fails where it decides or encodes them, and its leadership ends."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/kv/engine/test_replicated_store.py::test_batches_of_wrong_types_are_refused_where_they_are_submitted_and_harm_no_other"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.core import validation

    patch(validation, "check_bytes", lambda what, value: None)
