"""The part of a log that its retention settings remove."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.config.log_settings import LogSettings
from triplicate.log.core.head import LogSegment, SegmentState

KEPT = (SegmentState.CLOSED, SegmentState.ARCHIVED, SegmentState.LOST)


def retention_offset(segments: Sequence[LogSegment], settings: LogSettings, now_us: int, total_bytes: int | None = None) -> int | None:
    """The offset to truncate to, or None if everything stays. Only whole closed segments go, the oldest first.

    Args:
        segments: of the log, in order, from the oldest on.
        now_us: the wall clock, µs.
        total_bytes: of these segments and all that follow; None: none follow.
    """
    closed = [segment for segment in segments if segment.state in KEPT]
    rest_bytes = total_bytes if total_bytes is not None else kept_bytes(segments)
    offset: int | None = None
    for segment in closed:
        too_old = settings.retain_age_s > 0 and segment.max_time_us < now_us - settings.retain_age_s * 1e6
        too_much = settings.retain_size_bytes > 0 and rest_bytes > settings.retain_size_bytes
        if not too_old and not too_much:
            break
        offset = segment.end_offset
        rest_bytes -= segment.size_bytes
    return offset


def kept_bytes(segments: Sequence[LogSegment]) -> int:
    """Bytes of the segments that are closed and not marked for deletion."""
    return sum(segment.size_bytes for segment in segments if segment.state in KEPT)
