"""A take-over closes the open segment in the list at its last confirmed entry without fencing its writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment, closed_segment
    from triplicate.log.store.segments import password_of, read_header
    from triplicate.log.writing import segment_transitions

    async def count(client: Any, settings: Any, log: Any, segment: LogSegment) -> LogSegment:
        view = await client.open(segment.ledger_id, password=password_of(settings))
        try:
            last_entry = view.last_add_confirmed
            if last_entry < 0:
                return closed_segment(segment, records=0, size_bytes=0, last_entry=-1, min_time_us=0, max_time_us=0)
            first, last = await read_header(view, 0), await read_header(view, last_entry)
            return closed_segment(
                segment,
                records=last.end_index,
                size_bytes=1,
                last_entry=last_entry,
                min_time_us=first.wall_time_us,
                max_time_us=last.wall_time_us,
            )
        finally:
            await view.aclose()

    patch(segment_transitions, "recover_segment", count)
