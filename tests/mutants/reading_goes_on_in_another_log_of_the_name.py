"""Reading that begins again, and a consumer, take another log that got the name for the one that they have read."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.core.head import Head
from triplicate.log.reading import log_reader

TESTS = [
    "tests/unit/log/test_consumers.py::test_an_open_consumer_delivers_no_record_of_another_log_of_the_name",
    "tests/unit/log/reading/test_record_reader.py::test_a_second_loop_does_not_go_on_in_another_log_of_the_name",
]

_head_for = log_reader.head_for


async def _by_name(store: object, name: str, offset: int, log_id: str = "") -> Head:
    return await _head_for(store, name, offset)  # type: ignore[arg-type]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import readable_logs

    patch(readable_logs, "head_for", _by_name)
