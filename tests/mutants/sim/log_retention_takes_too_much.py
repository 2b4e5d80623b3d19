"""Retention by size deletes one segment more than its settings allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.config.log_settings import LogSettings
    from triplicate.log.core import retention
    from triplicate.log.core.head import LogSegment, SegmentState
    from triplicate.log.upkeep import truncation

    def retention_offset(segments: Sequence[LogSegment], settings: LogSettings, now_us: int, total_bytes: int | None) -> int | None:
        offset = retention.retention_offset(segments, settings, now_us, total_bytes)
        if offset is None:
            return None
        closed = [segment for segment in segments if segment.state in (SegmentState.CLOSED, SegmentState.ARCHIVED)]
        return next((segment.end_offset for segment in closed if segment.end_offset > offset), offset)

    patch(truncation, "retention_offset", retention_offset)
