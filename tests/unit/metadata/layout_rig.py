"""Services and ledger metadata that tests of the layout register."""

from __future__ import annotations

from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.metadata import (
    bookie_service,
)

INFO = bookie_service("127.0.0.1", 3181)


ELSEWHERE = bookie_service("127.0.0.2", 3181)


def new_metadata() -> LedgerMetadata:
    return LedgerMetadata(
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        segments=(EnsembleSegment(0, ("b1",)),),
        state=LedgerState.OPEN,
        digest_type=DigestType.CRC32C,
        password=b"",
        custom={},
        ctime_ms=None,
        creator_token=None,
        unknown_fields=b"",
    )
