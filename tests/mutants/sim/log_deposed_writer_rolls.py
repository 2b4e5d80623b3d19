"""A writer that rolls does not look whose the log is, so one that was deposed takes it back without a take-over."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import changes
    from triplicate.log.core.head import Owner, Segment
    from triplicate.log.store import Decision, Stored
    from triplicate.log.succession import Succession

    async def replace_open(self: Succession, closed: Segment, opened: Segment | None, epoch: int, owner: Owner) -> None:
        async def decide(stored: Stored) -> Decision | None:
            head = stored.head
            if (head.open.ledger_id if head.open else None) == (opened.ledger_id if opened else None):
                return None
            closing = closed
            if head.open is not None and head.open.ledger_id != closed.ledger_id:
                closing = await self.recover(head.open)
            return changes.roll(head, closing, opened, self._store.token(), self._store.limits), ()

        await self._store.change(self.name, decide)

    patch(Succession, "_replace_open", replace_open)
