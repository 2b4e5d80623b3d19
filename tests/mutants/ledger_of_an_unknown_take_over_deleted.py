"""After a take-over of unknown outcome its new ledger is deleted at once, although the list may name it: records are lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.errors import BadVersion, ConnectionLost
from triplicate.log.core.head import encode_head
from triplicate.log.core.head_changes import Change
from triplicate.log.store.head_store import HeadStore, StoredHead
from triplicate.metadata import SetData, TreeOperation

TESTS = ["tests/unit/log/test_logs_take_over.py::test_a_take_over_of_unknown_outcome_is_settled_by_its_token"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    commit = HeadStore.commit

    async def gives_up(self: HeadStore, name: str, stored: StoredHead, change: Change, extra: Sequence[TreeOperation] = ()) -> StoredHead:
        if change.head.epoch == stored.head.epoch or change.pages:
            return await commit(self, name, stored, change, extra)
        try:
            await self.tree.multi([SetData(self.path(name), encode_head(change.head), stored.version)])
        except ConnectionLost:
            raise BadVersion("the list has changed") from None
        return StoredHead(change.head, stored.version + 1)

    patch(HeadStore, "commit", gives_up)
