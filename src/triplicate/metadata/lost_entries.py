"""Whether a bookie whose disks were replaced may have held entries of a ledger."""

from __future__ import annotations

from triplicate.metadata.incarnations import Incarnation
from triplicate.metadata.layout import ClusterMetadata
from triplicate.metadata.ledger_store import Versioned
from triplicate.metadata.trash import TrashedLedger


async def may_have_lost_entries(
    metadata: ClusterMetadata, bookie_id: str, incarnation: Incarnation, ledger_id: int, found: Versioned | TrashedLedger
) -> bool:
    """Whether the ledger names the bookie, and may be older than the bookie's present disks.

    Args:
        incarnation: the present one.
        found: the ledger, or its record in the trash.

    Raises:
        MetadataError, FormatError.
    """
    ledger = found.value if isinstance(found, Versioned) else found.metadata
    if not any(bookie_id in segment.ensemble for segment in ledger.segments):
        return False
    # A wrong clock, a chosen id, or a return from the trash must not make an old ledger look new.
    is_new = ledger_id >= incarnation.ledger_id_bound
    return not is_new or await metadata.trash.first_created_ms(ledger_id, found) <= incarnation.changed_ms
