"""A truncation within a segment deletes the whole segment, with the records behind the cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log.core import head_changes
    from triplicate.log.core.head import Head, LogSegment, Page, SegmentState

    def truncate(head: Head, offset: int, pages: Mapping[int, Page], token: str) -> head_changes.Change:
        first = max(head.first_offset, offset)

        def mark(segment: LogSegment) -> LogSegment:
            return segment if segment.first_offset >= first else replace(segment, state=SegmentState.DELETING)

        edited = replace(head, first_offset=first, token=token)
        return head_changes.rewrite(edited, pages, mark, lambda reference: reference.first_offset < first)

    patch(head_changes, "truncate", truncate)
