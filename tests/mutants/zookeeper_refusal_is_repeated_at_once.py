"""A tree that was refused opens sessions without a pause."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import renewing_tree

TESTS = [
    "tests/unit/metadata/drivers/test_renewing_tree.py::test_a_store_that_refuses_is_asked_again_only_after_a_pause",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(renewing_tree, "REFUSED_PAUSE_S", 0.0)
