"""The choice of the bookie to lose, and the size of the load."""

from __future__ import annotations

from benchmarks.repair.run import Load, lost_bookie
from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata, LedgerState


def ledger(*ensemble: str, length: int) -> LedgerMetadata:
    return LedgerMetadata(
        ensemble_size=len(ensemble),
        write_quorum=len(ensemble),
        ack_quorum=2,
        segments=(EnsembleSegment(0, ensemble),),
        digest_type=DigestType.CRC32C,
        state=LedgerState.CLOSED,
        last_entry_id=9,
        length=length,
    )


def test_the_bookie_that_most_ledgers_name_is_lost() -> None:
    ledgers = {5: ledger("a", "b", "c", length=10), 3: ledger("d", "b", "c", length=20), 4: ledger("d", "a", "c", length=40)}
    lost = lost_bookie(ledgers)
    assert (lost.bookie_id, lost.ledgers, lost.size_bytes) == ("c", (3, 4, 5), 70)
    assert lost_bookie({3: ledger("b", "a", length=1)}).bookie_id == "a"


def test_the_entries_of_a_load_fill_its_ledgers() -> None:
    assert Load(1024, 300, 4096).entries == 873
    assert Load(1, 300, 1 << 20).entries == 1
