"""A reset makes a consumer of a mistyped name, although the caller has not asked for it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import consumers

TESTS = ["tests/unit/log/test_consumers.py::test_a_reset_of_a_consumer_that_does_not_exist_can_be_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = consumers.reset_consumer

    async def reset_consumer(*arguments: object, **options: object) -> int:
        return await original(*arguments, **{**options, "create": True})  # type: ignore[arg-type]

    patch(consumers, "reset_consumer", reset_consumer)
