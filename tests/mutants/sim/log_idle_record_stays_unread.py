"""An idle writer sends no no-op behind its last record, so readers cannot read it until the next append."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.log_writer import LogWriter

    patch(LogWriter, "_append_idle_noop", lambda self: None)
