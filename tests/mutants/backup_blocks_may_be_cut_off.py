"""The last block of an encrypted part has the nonce of any other one, so that blocks may be missing behind it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup.core import part_cipher

TESTS = ["tests/unit/sql/backup/core/test_part_cipher.py::test_a_block_that_is_changed_moved_or_left_out_is_refused"]


class _Counter:
    @staticmethod
    def pack(number: int, is_last: bool) -> bytes:
        return number.to_bytes(12, "big")


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(part_cipher, "_NONCE", _Counter)
