"""A publisher's last batch is written after the head, so a batch whose publish was interrupted is published again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head_changes import Change
    from triplicate.log.store.head_store import HeadStore, StoredHead
    from triplicate.metadata import TreeOperation

    commit = HeadStore.commit

    async def head_first(self: HeadStore, name: str, stored: StoredHead, change: Change, extra: Sequence[TreeOperation] = ()) -> StoredHead:
        done = await commit(self, name, stored, change)
        if extra:
            await self.tree.multi(extra)
        return done

    patch(HeadStore, "commit", head_first)
