"""All ledgers are encrypted under one key, in which the counters of different writers meet."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/core/test_encryption.py::test_ledgers_and_salts_have_derived_keys_of_their_own"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import encryption
    from triplicate.log.core.encryption import EncryptionBlock

    derive = encryption.derive_cipher

    def of_all(key: bytes, domain: bytes, log_id: str, block: EncryptionBlock) -> object:
        return derive(key, domain, log_id, block._replace(ledger_id=0, salt=bytes(16)))

    patch(encryption, "derive_cipher", of_all)
