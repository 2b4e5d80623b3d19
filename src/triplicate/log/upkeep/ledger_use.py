"""Which ledgers the logs of a cluster list, for programs that show ledgers or delete one by its id."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.errors import LedgerListed, NoSuchLog
from triplicate.log.core.head import Purpose, SegmentState
from triplicate.log.core.purposes import deletion_advice
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.upkeep.log_snapshots import read_list
from triplicate.log.upkeep.orphans import delete_unlisted, log_of

ABSENT_BY_RIGHT = (SegmentState.DELETING, SegmentState.LOST, SegmentState.ARCHIVED)
"""States of segments whose ledgers may be gone."""


@dataclass(frozen=True, slots=True)
class LedgerUse:
    """The use of a ledger by the log that lists it."""

    log: str
    purpose: Purpose
    role: str
    """``open segment``, ``segment`` or ``snapshot``."""

    def __str__(self) -> str:
        owner = f" of {self.purpose}" if self.purpose.name else ""
        return f"{self.role} of log {self.log!r}{owner}"


async def uses_of(store: HeadStore, name: str) -> dict[int, LedgerUse]:
    """Each ledger that a log needs, by id.

    Raises:
        NoSuchLog: it does not exist, or is being deleted. FormatError, CorruptionError: its lists cannot be read.
    """
    head = (await store.read(name)).head
    found = {one.ledger_id: LedgerUse(name, head.purpose, "snapshot") for one in (await read_list(store, name)).listed.snapshots}
    for segment in await store.segments(name):
        if segment.state not in ABSENT_BY_RIGHT:
            role = "open segment" if segment.state is SegmentState.OPEN else "segment"
            found[segment.ledger_id] = LedgerUse(name, head.purpose, role)
    return found


async def require_unlisted(store: HeadStore, ledger_id: int) -> None:
    """Check that no log lists a ledger at this moment.

    Raises:
        LedgerListed: it names the log and the command that is meant for it. NoSuchLedger. FormatError, CorruptionError: a list cannot be
            read, so the ledger may be in it.
    """
    name = log_of((await store.ledgers.get(ledger_id)).value)
    if not name:
        return
    await store.sync()
    try:
        use = (await uses_of(store, name)).get(ledger_id)
    except NoSuchLog:
        return  # The ledgers of a deleted log belong to nobody.
    if use is not None:
        raise LedgerListed(f"ledger {ledger_id} is the {use}; {deletion_advice(name, use.purpose)}")


async def delete_ledger(client: LedgerClient, store: HeadStore, ledger_id: int) -> None:
    """Delete a ledger that no log lists. The deletion fails if one lists it meanwhile.

    Raises:
        LedgerListed: a log lists it; nothing was deleted. NoSuchLedger. Also the errors of `require_unlisted`.
    """
    await require_unlisted(store, ledger_id)
    found = await store.ledgers.get(ledger_id)
    name = log_of(found.value)
    if not name:
        await client.delete(ledger_id, version=found.version)
    elif not await delete_unlisted(client, store, name, ledger_id, found=found):
        await require_unlisted(store, ledger_id)
        raise LedgerListed(f"ledger {ledger_id} of log {name!r} stays, since it or the log's list changed meanwhile; run the command again")
