"""A key that was added to the file within a second of the last read is not found."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/store/test_key_file.py::test_a_key_that_was_added_is_found_without_a_restart"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.key_file import KeyFile

    def find(self: KeyFile, key_id: str) -> bytes | None:
        if self._read_at is None or (key_id not in self._keys and self._monotonic() - self._read_at > 1.0):
            self._read()
        return self._keys.get(key_id)

    patch(KeyFile, "find", find)
