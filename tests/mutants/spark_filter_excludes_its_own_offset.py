"""A read with a filter for offsets up to one does not deliver that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/unit/spark/logs/test_batch_readers.py::test_offsets_bound_the_plan"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.logs import batch_readers

    bounds = batch_readers._bounds

    def broken(kind: str, values: Sequence[int]) -> tuple[int, int]:
        return bounds(kind.replace("LessThanOrEqual", "LessThan"), values)

    patch(batch_readers, "_bounds", broken)
