"""A take-over changes any version of the list, and drops segments that it has neither fenced nor seen."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head_changes import Change
    from triplicate.log.store.head_store import HeadStore, StoredHead
    from triplicate.metadata import ANY_VERSION

    commit = HeadStore.commit

    async def on_any_version(self: HeadStore, name: str, stored: StoredHead, change: Change, extra: object = ()) -> StoredHead:
        if change.head.epoch > stored.head.epoch and not change.head.deleted:
            stored = StoredHead(stored.head, ANY_VERSION)
            await commit(self, name, stored, change)
            return await self.read(name)
        return await commit(self, name, stored, change, extra)  # type: ignore[arg-type]

    patch(HeadStore, "commit", on_any_version)
