"""A publisher's last batch is written after the head and not with it, so a batch whose publish was cut short is published again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.changes import Change
    from triplicate.log.store import HeadStore, Stored
    from triplicate.metadata import Operation

    commit = HeadStore.commit

    async def head_first(self: HeadStore, name: str, stored: Stored, change: Change, extra: Sequence[Operation] = ()) -> Stored:
        done = await commit(self, name, stored, change)
        if extra:
            await self.tree.multi(extra)
        return done

    patch(HeadStore, "commit", head_first)
