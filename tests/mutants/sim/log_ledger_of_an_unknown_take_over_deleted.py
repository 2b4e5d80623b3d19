"""After a take-over of unknown outcome its new ledger is deleted at once, although the list may name it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"
CHECKERS = ("acknowledged_records_stay", "readers_miss_nothing", "progress")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import BadVersion, ConnectionLost
    from triplicate.log.core.head_changes import Change
    from triplicate.log.store.head_store import HeadStore, StoredHead
    from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
    from triplicate.log.upkeep import orphans
    from triplicate.log.writing import segment_transitions
    from triplicate.metadata import TreeOperation

    commit, discard = HeadStore.commit, orphans.discard
    unknown: set[int] = set()
    """Ids of the ledgers that take-overs of unknown outcome would have opened."""

    async def gives_up(self: HeadStore, name: str, stored: StoredHead, change: Change, extra: Sequence[TreeOperation] = ()) -> StoredHead:
        try:
            return await commit(self, name, stored, change, extra)
        except ConnectionLost:
            if change.head.epoch == stored.head.epoch or change.head.open is None:
                raise
            unknown.add(change.head.open.ledger_id)
            raise BadVersion("somebody else changed it, surely") from None

    async def at_once(client: LedgerClient, store: HeadStore, name: str, ledger: LedgerAppender | None) -> None:
        if ledger is None or ledger.ledger_id not in unknown:
            await discard(client, store, name, ledger)
        else:
            ledger.abandon()
            await client.delete(ledger.ledger_id)

    patch(HeadStore, "commit", gives_up)
    patch(segment_transitions, "discard", at_once)
