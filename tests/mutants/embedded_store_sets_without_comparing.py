"""An embedded store sets a key without a look at its value."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/embedded/test_embedded_store.py::test_a_value_is_replaced_only_by_those_who_know_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.embedded import EmbeddedStore
    from triplicate.kv import NO_EXPIRY, Expiry

    async def sets(self: EmbeddedStore, key: bytes, expected: bytes | None, value: bytes | None, *, expiry: Expiry = NO_EXPIRY) -> bool:
        if value is None:
            return (await self.delete(key))[0] == 1
        return (await self.put(key, value, expiry=expiry))[0].applied

    patch(EmbeddedStore, "compare_and_set", sets)
