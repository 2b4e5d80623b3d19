"""Marks in the metadata of staging ledgers: whether and where a ledger is listed, so that the list need not be searched.

The transaction that lists a staging ledger records its offset in the ledger's own metadata. Ledgers of earlier releases have no mark. Those
of this release announce from the beginning that they will (`staging` is 2), so that a missing mark proves that they are unlisted.
A publish of more ledgers than one transaction can mark announces them first: the mark then gives the offset at which a search begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from triplicate.errors import FormatError
from triplicate.ledger import LedgerMetadata

COMPONENT = "staging"
PROMISE, PROMISED = "staging", b"2"
PUBLISHED, ANNOUNCED = "published", "announced"


@dataclass(frozen=True, slots=True)
class PublishMark:
    """The offset at which a ledger is listed.

    Args:
        exact: the ledger is listed at this offset; otherwise it may be listed at the offset or after it.
    """

    log_id: str
    offset: int
    exact: bool


def promises_mark(metadata: LedgerMetadata) -> bool:
    """Whether the ledger has a mark once it is published."""
    return metadata.custom.get(PROMISE) == PROMISED


def mark_of(metadata: LedgerMetadata, ledger_id: int) -> PublishMark | None:
    """The mark of a ledger, or None. Raises FormatError."""
    for key in (PUBLISHED, ANNOUNCED):
        text = metadata.custom.get(key, b"").decode(errors="replace")
        if text:
            log_id, _, offset = text.partition(" ")
            if not offset.isdecimal():
                raise FormatError(f"ledger {ledger_id}: {text!r} does not say where it was published")
            return PublishMark(log_id, int(offset), key == PUBLISHED)
    return None


def marked(metadata: LedgerMetadata, mark: PublishMark) -> LedgerMetadata:
    """The metadata with this mark instead of any other."""
    custom = {key: value for key, value in metadata.custom.items() if key not in (PUBLISHED, ANNOUNCED)}
    custom[PUBLISHED if mark.exact else ANNOUNCED] = f"{mark.log_id} {mark.offset}".encode()
    return replace(metadata, custom=custom)


def is_unlisted(metadata: LedgerMetadata) -> bool:
    """Whether these metadata prove that no log lists the ledger, nor can list it while its node keeps their version."""
    return promises_mark(metadata) and PUBLISHED not in metadata.custom and ANNOUNCED not in metadata.custom
