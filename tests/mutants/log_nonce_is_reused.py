"""The entries of a ledger are encrypted under one nonce, so that two of them together betray both."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/core/test_encryption.py::test_no_nonce_is_used_twice_under_one_derived_key"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.encryption import LedgerEncryptor

    encrypt = LedgerEncryptor.encrypt

    def again(self: LedgerEncryptor, header: bytes, authenticated: bytes, body: bytes, place: int, control: int = 0) -> bytes:
        self._number = 0
        return encrypt(self, header, authenticated, body, place, control)

    patch(LedgerEncryptor, "encrypt", again)
