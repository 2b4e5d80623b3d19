"""A limit on the bytes of a micro-batch has no effect beside one on its records."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_streaming_limits.py::test_both_most_records_and_most_bytes_limit_a_batch"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from collections.abc import Mapping

    from triplicate.spark.cluster.access import LogAccess
    from triplicate.spark.core.offsets import limited
    from triplicate.spark.logs.streaming import LogStreamReader

    def broken(self: LogStreamReader, logs: LogAccess, begins: Mapping[str, int], ends: dict[str, int]) -> dict[str, int]:
        return limited(begins, ends, self._read.max_offsets_per_trigger or 10**9)

    patch(LogStreamReader, "_limited", broken)
