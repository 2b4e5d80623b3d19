"""A duration of a session may be infinite, and `SHOW` of it fails."""

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.pg.protocol import settings
from triplicate.sql.pg.protocol.settings import duration_s

TESTS = ["tests/unit/sql/pg/protocol/test_settings.py::test_a_duration_out_of_range_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(text: str) -> float:
        try:
            return duration_s(text)
        except SqlError as error:
            if "valid range" in str(error) and not text.startswith("-"):
                return float("inf")
            raise

    patch(settings, "duration_s", broken)
