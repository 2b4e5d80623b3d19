"""A take-over keeps the epoch, so records of the new writer cannot be distinguished from those of the old one."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log.core import head_changes
    from triplicate.log.core.head import Head, LogSegment, Owner

    take_over = head_changes.take_over

    def same_epoch(
        head: Head, closed: LogSegment | None, opened: LogSegment | None, owner: Owner, token: str, limits: head_changes.PageLimits
    ) -> head_changes.Change:
        change = take_over(head, closed, opened, owner, token, limits)
        return replace(change, head=replace(change.head, epoch=max(1, head.epoch)))

    patch(head_changes, "take_over", same_epoch)
