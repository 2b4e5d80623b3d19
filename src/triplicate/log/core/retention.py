"""How much of a log its retention settings let go."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.config.log import LogSettings
from triplicate.log.core.head import Segment, SegmentState


def retention_offset(segments: Sequence[Segment], settings: LogSettings, now_us: int) -> int | None:
    """The offset to truncate to, or None if everything stays. Only whole closed segments go, the oldest first.

    Args:
        segments: all of the log, in order.
        now_us: the wall clock, µs.
    """
    closed = [segment for segment in segments if segment.state in (SegmentState.CLOSED, SegmentState.ARCHIVED)]
    total_bytes = sum(segment.size_bytes for segment in closed)
    offset: int | None = None
    for segment in closed:
        too_old = settings.retain_age_s > 0 and segment.max_time_us < now_us - settings.retain_age_s * 1e6
        too_much = settings.retain_size_bytes > 0 and total_bytes > settings.retain_size_bytes
        if not too_old and not too_much:
            break
        offset = segment.end_offset
        total_bytes -= segment.size_bytes
    return offset
