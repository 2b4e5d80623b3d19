"""Only the body of an encrypted entry is authenticated: its count, its times and its producer can be changed unnoticed."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/core/test_encrypted_entries.py::test_a_changed_count_time_or_producer_is_noticed[24]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.encryption import EncryptionBlock, LedgerDecryptor, LedgerEncryptor

    encrypt, decrypt = LedgerEncryptor.encrypt, LedgerDecryptor.decrypt

    def bare(self: LedgerEncryptor, header: bytes, authenticated: bytes, body: bytes, place: int, control: int = 0) -> bytes:
        return encrypt(self, header, b"", body, place, control)

    def trusting(self: LedgerDecryptor, block: EncryptionBlock, authenticated: bytes, body: bytes, ledger_id: int, entry_id: int) -> bytes:
        return decrypt(self, block, b"", body, ledger_id, entry_id)

    patch(LedgerEncryptor, "encrypt", bare)
    patch(LedgerDecryptor, "decrypt", trusting)
