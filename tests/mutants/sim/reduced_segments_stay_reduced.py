"""The segments that a log's writer opened with fewer copies are not listed as such, and nobody raises them."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("raised_segments_are_complete",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.config.log_settings import LogSettings
    from triplicate.log.core.head import Quorums
    from triplicate.log.store import segments

    def not_recorded(log: LogSettings, copies: Quorums) -> None:
        return None

    patch(segments, "reduced_quorums", not_recorded)
