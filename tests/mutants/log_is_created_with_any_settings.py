"""A new log's settings are stored as they are given, so that a log can roll at size 0, without end."""

from collections.abc import Callable, Mapping

from triplicate.config.log_settings import LogSettings
from triplicate.log import logs
from triplicate.log.core.alteration import altered_settings

TESTS = ["tests/unit/log/test_logs_altered.py::test_no_log_is_created_with_what_cannot_be"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(settings: LogSettings, changes: Mapping[str, int | float | str]) -> LogSettings:
        created = len(changes) == len(LogSettings.__slots__)
        return LogSettings(**changes) if created else altered_settings(settings, changes)  # type: ignore[arg-type]

    patch(logs, "altered_settings", broken)
