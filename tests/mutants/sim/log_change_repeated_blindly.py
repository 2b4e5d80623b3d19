"""After a lost connection a change of the head is repeated on any version, without checking whether it was applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import BadVersion, ConnectionLost
    from triplicate.log.core.head import encode_head
    from triplicate.log.core.head_changes import Change, numbered, numbered_head
    from triplicate.log.store.head_store import HeadStore, StoredHead
    from triplicate.metadata import SetData, TreeOperation

    async def commit(self: HeadStore, name: str, stored: StoredHead, change: Change, extra: Sequence[TreeOperation] = ()) -> StoredHead:
        numbers: list[int] = []
        for place in range(len(change.pages)):
            numbers.append(await self._write_page(name, numbered(change, numbers, place)))
        head = numbered_head(change, numbers)
        version, again = stored.version, False
        while True:
            try:
                # The stored state of the publisher is written only once; the head overwrites every time.
                await self.tree.multi([SetData(self.path(name), encode_head(head), version), *(() if again else extra)])
            except ConnectionLost:
                again, version = True, (await self.read_deleted(name)).version
            except BadVersion:
                if not again:
                    raise
                version = (await self.read_deleted(name)).version
            else:
                return StoredHead(head, version + 1)

    patch(HeadStore, "commit", commit)
