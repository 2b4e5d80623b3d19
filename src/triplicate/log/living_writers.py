"""Whether the writer of a log's ledger lives, for programs that must not fence it."""

from __future__ import annotations

from triplicate.errors import ArgumentError, NoSuchLog
from triplicate.ledger import LedgerMetadata
from triplicate.log.logs import Logs
from triplicate.log.reading.log_entries import epoch_of_metadata


async def has_living_writer(logs: Logs, metadata: LedgerMetadata) -> bool:
    """Whether a ledger belongs to a log whose writer has a session, and was created in that writer's epoch.

    A ledger of an earlier epoch has no writer, since the writer that took the log over has fenced it or never lists it. False for a ledger
    that belongs to no log; its writer has no session.

    Raises:
        FormatError: the head of the log, or its owner, cannot be decoded. MetadataError: the metadata store failed.
    """
    try:
        name = metadata.custom.get("log", b"").decode("utf-8")
        if not name or await logs.owner(name) is None:
            return False
        return epoch_of_metadata(metadata) >= (await logs.head(name)).epoch
    except (NoSuchLog, ArgumentError, UnicodeDecodeError):
        # Custom metadata is free: the name may be that of no log.
        return False
