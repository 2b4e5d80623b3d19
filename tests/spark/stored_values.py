"""Values in a log, as applications have written them."""

from __future__ import annotations

from tests.spark.conftest import Bench

AVRO = (b"\x0e\x02\x06tea", b"\xd8\x04\x00")
"""By Avro's specification: zigzag numbers, the branch of a union, the length of a text."""


def store(bench: Bench, *values: bytes) -> str:
    log = bench.new_log()
    bench.spark.createDataFrame([(value,) for value in values], "value BINARY").coalesce(1).write.format("triplicate").mode(
        "append"
    ).options(**bench.named(log)).save()
    return log
