"""After a take-over or roll of unknown outcome its new ledger is deleted at once, although the list may name it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"
CHECKERS = ("acknowledged_records_stay", "readers_miss_nothing", "progress")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import ConnectionLost
    from triplicate.log.core.head import encode_head
    from triplicate.log.core.head_changes import Change
    from triplicate.log.store.head_store import HeadStore, StoredHead
    from triplicate.metadata import SetData, TreeOperation

    commit = HeadStore.commit

    async def gives_up(self: HeadStore, name: str, stored: StoredHead, change: Change, extra: Sequence[TreeOperation] = ()) -> StoredHead:
        if change.head.epoch == stored.head.epoch or change.pages:
            return await commit(self, name, stored, change, extra)
        try:
            await self.tree.multi([SetData(self.path(name), encode_head(change.head), stored.version)])
        except ConnectionLost:
            from triplicate.errors import BadVersion

            raise BadVersion("somebody else changed it, surely") from None
        except Exception:
            return await commit(self, name, stored, change, extra)
        return StoredHead(change.head, stored.version + 1)

    patch(HeadStore, "commit", gives_up)
