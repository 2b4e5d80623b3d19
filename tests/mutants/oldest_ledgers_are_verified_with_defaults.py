"""The audits verify ledgers whose metadata have neither digest type nor password with the defaults, and take their copies for damaged."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/autorecovery/test_ledger_audits.py::test_copies_are_not_damaged_because_the_metadata_have_no_password"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import ledger_audits, ledger_check
    from triplicate.ledger import EntryCodec, LedgerMetadata

    def verifying(ledger_id: int, metadata: LedgerMetadata, password: bytes = b"") -> EntryCodec:
        return EntryCodec(ledger_id, metadata.digest_type, metadata.password)

    for module in ledger_audits, ledger_check:
        patch(module, "codec_of", verifying)
