"""A take-over whose outcome is unknown counts as won, so two writers write, one of them into a ledger that no list has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import ConnectionLost
    from triplicate.log.core.changes import Change
    from triplicate.log.core.head import encode_head
    from triplicate.log.store import HeadStore, Stored
    from triplicate.metadata import Operation, SetData

    commit = HeadStore.commit

    async def hopeful(self: HeadStore, name: str, stored: Stored, change: Change, extra: Sequence[Operation] = ()) -> Stored:
        if change.head.epoch == stored.head.epoch or change.pages:
            return await commit(self, name, stored, change, extra)
        try:
            await self.tree.multi([SetData(self.path(name), encode_head(change.head), stored.version)])
        except ConnectionLost:
            return Stored(change.head, stored.version + 1)
        except Exception:
            return await commit(self, name, stored, change, extra)
        return Stored(change.head, stored.version + 1)

    patch(HeadStore, "commit", hopeful)
