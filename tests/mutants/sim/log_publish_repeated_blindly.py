"""After a lost connection a publish is repeated on the newest head, without checking whether it was applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.errors import ConnectionLost
    from triplicate.log.core.head import Head, encode_head
    from triplicate.log.store.head_store import HeadStore, StoredHead
    from triplicate.metadata import SetData, TreeOperation

    swap = HeadStore._swap

    async def again(self: HeadStore, name: str, stored: StoredHead, head: Head, operations: Sequence[TreeOperation]) -> StoredHead:
        added = head.recent[len(stored.head.recent) :]
        if head.epoch != stored.head.epoch or head.open is not None or stored.head.open is not None or not added:
            return await swap(self, name, stored, head, operations)
        try:
            await self.tree.multi(operations)
        except ConnectionLost:
            current = await self.read(name)
            offset = current.head.closed_end
            moved = []
            for segment in added:
                moved.append(replace(segment, first_offset=offset))
                offset += segment.records
            head = replace(current.head, recent=(*current.head.recent, *moved), token=head.token)
            operations = [SetData(self.path(name), encode_head(head), current.version)]
            stored = current
        else:
            return StoredHead(head, stored.version + 1)
        return await swap(self, name, stored, head, operations)

    patch(HeadStore, "_swap", again)
