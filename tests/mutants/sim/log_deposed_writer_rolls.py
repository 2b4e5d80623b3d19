"""A writer that rolls does not look whose the log is, so one that was deposed takes it back without a take-over."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log.core import changes
    from triplicate.log.core.head import Owner, Segment
    from triplicate.log.store import Decision, Stored
    from triplicate.log.succession import Succession

    async def replace_open(self: Succession, closed: Segment, opened: Segment | None, epoch: int, owner: Owner) -> Segment | None:
        async def decide(stored: Stored) -> Decision | None:
            head = stored.head
            if (head.open.ledger_id if head.open else None) == (opened.ledger_id if opened else None):
                return None
            # The segment that it finds open is somebody else's; it is closed as if it were the writer's own, and what follows does
            # not look where that one ended.
            closing = closed if head.open is None or head.open.ledger_id == closed.ledger_id else await self.recover(head.open)
            recent = (*head.recent, closing) if head.open is not None else head.recent
            return changes.Change(replace(head, open=opened, recent=recent, token=self._store.token())), ()

        return (await self._store.change(self.name, decide)).head.open

    async def prepare(self: Succession, epoch: int, *, full: bool) -> None:
        await self._next.prepare(full=full)

    patch(Succession, "_replace_open", replace_open)
    patch(Succession, "prepare", prepare)
