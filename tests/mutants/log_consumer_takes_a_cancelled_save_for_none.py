"""A consumer believes that a cancelled save did not happen, and does not save the earlier position that it knows."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_consumers.py::test_an_earlier_position_is_saved_also_after_a_cancelled_save_of_a_later_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.reading.log_consumer import LogConsumer

    save = LogConsumer.save

    async def trusting(self: LogConsumer, position: int | None = None) -> int:
        self._unsettled = False
        return await save(self, position)

    patch(LogConsumer, "save", trusting)
