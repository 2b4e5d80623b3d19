"""Many records of a producer are checked when each is sent: those behind a refused one take its number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_many_records_with_one_that_is_too_large_are_refused_before_any_is_appended"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    import asyncio

    from triplicate.log.writing.log_producer import LogProducer

    async def append_many(self: LogProducer, values: Sequence[Any], *, sequence: int | None = None, keys: Any = None) -> list[Any]:
        numbers = [None if sequence is None else sequence + place for place in range(len(values))]
        return await asyncio.gather(*(self.append(value, sequence=number) for value, number in zip(values, numbers, strict=True)))

    patch(LogProducer, "append_many", append_many)
