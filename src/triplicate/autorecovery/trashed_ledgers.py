"""The ledgers in the trash that name bookies which are leaving. They can be undeleted, so their copies are needed like those of others.

One that was closed gets other bookies in the trash. One that was open has no known end: it keeps its bookies while those that stay have a
copy of every acknowledged entry. After an undelete it is repaired like any open ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from triplicate.autorecovery.core.needed_copies import names_any
from triplicate.autorecovery.decommission_progress import Obstacle
from triplicate.autorecovery.open_ledger_view import awaits_writer
from triplicate.client import Client
from triplicate.errors import FormatError, NoSuchLedger
from triplicate.ledger import LedgerMetadata, is_covered
from triplicate.metadata import TrashedLedger
from triplicate.runtime import map_bounded

READS_MAX = 32
"""Nodes of the trash that are read at a time."""
CHUNK = 256


@dataclass(frozen=True, slots=True)
class LeavingTrash:
    """The ledgers that can be undeleted and would name leaving bookies then.

    Args:
        movable: those whose copies can be made on other bookies in the trash.
        opened: those that were open when they were deleted.
        unreadable: ledgers whose node a newer release has written.
    """

    movable: tuple[TrashedLedger, ...]
    opened: tuple[TrashedLedger, ...]
    unreadable: tuple[int, ...]


async def leaving_trash(client: Client, leaving: Collection[str]) -> LeavingTrash:
    """Read the trash. Raises MetadataError."""
    trash = client.metadata.trash

    async def read(ledger_id: int) -> TrashedLedger | int | None:
        try:
            found = await trash.get(ledger_id)
        except FormatError:
            return ledger_id
        if found is None or now_ms >= found.ends_ms() or not names_any(found.metadata, leaving):
            return None
        return None if await _is_moved(client, ledger_id, leaving) else found

    movable: list[TrashedLedger] = []
    opened: list[TrashedLedger] = []
    unreadable: list[int] = []
    ledger_ids = await trash.ledger_ids()
    now_ms = await trash.now_ms() if ledger_ids else 0
    for start in range(0, len(ledger_ids), CHUNK):
        for found in await map_bounded(read, ledger_ids[start : start + CHUNK], most=READS_MAX, name="walk over the trash"):
            if isinstance(found, int):
                unreadable.append(found)
            elif found is not None:
                (movable if found.metadata.is_closed or awaits_writer(found.metadata) else opened).append(found)
    return LeavingTrash(tuple(movable), tuple(opened), tuple(unreadable))


async def _is_moved(client: Client, ledger_id: int, leaving: Collection[str]) -> bool:
    """Whether the ledger exists without these bookies: it was undeleted, or its deletion has only begun."""
    try:
        return not names_any(await client.metadata_of(ledger_id), leaving)
    except NoSuchLedger:
        return False
    except FormatError:
        return True  # The walk over the ledgers finds it.


def obstacles_in_trash(found: LeavingTrash, is_gone: Callable[[str], bool]) -> list[Obstacle]:
    """Why the bookies cannot be removed yet.

    Args:
        is_gone: whether a bookie is leaving, or unknown to the cluster.
    """
    return [
        *(Obstacle(one.ledger_id, "it was deleted meanwhile, and names the bookie in the trash", True) for one in found.movable),
        *(Obstacle(one.ledger_id, _open_reason(one), True) for one in found.opened if _may_lose_entries(one.metadata, is_gone)),
        *(Obstacle(ledger_id, "its metadata in the trash cannot be decoded", False) for ledger_id in found.unreadable),
    ]


def _open_reason(trashed: TrashedLedger) -> str:
    until = datetime.fromtimestamp(trashed.ends_ms() // 1000, UTC).isoformat()
    return (
        f"it is in the trash until {until}, was open when it was deleted, and its last copies are on the leaving bookies: "
        "undelete, recover and delete it, or wait"
    )


def _may_lose_entries(metadata: LedgerMetadata, is_gone: Callable[[str], bool]) -> bool:
    """Whether an acknowledged entry may be on the bookies alone that are gone."""
    return not all(
        is_covered(_positions(segment.ensemble, is_gone), len(segment.ensemble), metadata.write_quorum, metadata.ack_quorum)
        for segment in metadata.segments
    )


def _positions(ensemble: Iterable[str], is_gone: Callable[[str], bool]) -> list[int]:
    return [position for position, bookie_id in enumerate(ensemble) if is_gone(bookie_id)]
