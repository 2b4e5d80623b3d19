"""Moving segments from the head to a page drops the reference to the page before, and with it a part of the log."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log.core import head_changes
    from triplicate.log.core.head import Head

    spill = head_changes._spill

    def forget(before: Head, head: Head, limits: head_changes.PageLimits) -> head_changes.Change:
        change = spill(before, head, limits)
        return replace(change, head=replace(change.head, pages=change.head.pages[-1:]))

    patch(head_changes, "_spill", forget)
