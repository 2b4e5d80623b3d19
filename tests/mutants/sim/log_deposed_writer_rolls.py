"""A writer rolls without checking that it still owns the log, so a deposed one takes it back without a take-over."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log.core import head_changes
    from triplicate.log.core.head import LogSegment, Owner
    from triplicate.log.store.head_store import HeadDecision, StoredHead
    from triplicate.log.writing.segment_transitions import SegmentTransitions

    async def replace_open(
        self: SegmentTransitions, closed: LogSegment, opened: LogSegment | None, epoch: int, owner: Owner
    ) -> LogSegment | None:
        async def decide(stored: StoredHead) -> HeadDecision | None:
            head = stored.head
            if (head.open.ledger_id if head.open else None) == (opened.ledger_id if opened else None):
                return None
            # The segment that it finds open is somebody else's; it is closed as if it were the writer's own, and what follows does
            # not look where that one ended.
            closing = closed if head.open is None or head.open.ledger_id == closed.ledger_id else await self.recover(head.open)
            recent = (*head.recent, closing) if head.open is not None else head.recent
            return head_changes.Change(replace(head, open=opened, recent=recent, token=self._store.token())), ()

        return (await self._store.change(self.name, decide, log_id=self.log_id)).head.open

    async def prepare(self: SegmentTransitions, epoch: int, *, full: bool) -> None:
        await self._next.prepare(full=full)

    patch(SegmentTransitions, "_replace_open", replace_open)
    patch(SegmentTransitions, "prepare", prepare)
