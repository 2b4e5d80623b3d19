"""A read of a store has any level: bounded by NaN seconds, or for a session at a position below 0."""

from collections.abc import Callable

from triplicate.kv import StoreReadLevel

TESTS = ["tests/unit/kv/engine/test_replicated_store.py::test_a_level_that_cannot_be_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(StoreReadLevel, "__post_init__", lambda level: None)
