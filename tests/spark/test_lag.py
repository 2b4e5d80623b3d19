"""How far streams are behind: the documented listener, and the position of a query as a named consumer."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path
from typing import Any

from tests.spark.conftest import Bench
from tests.waiting import wait_until
from triplicate.client import Client
from triplicate.log import ConsumerInfo, Logs
from triplicate.spark import LagListener, lag_of
from triplicate.spark.cluster.versions import HAS_LIMITS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def test_the_documents_listener_sees_a_query_and_its_end(bench: Bench) -> None:
    found = re.search(r"## Lag and progress\n.*?```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    log = bench.new_log()
    bench.write(log, range(100))
    source = bench.spark.readStream.format("triplicate").options(**bench.named(log), startingOffsets="earliest", consumerName="copy")
    if HAS_LIMITS:
        source = source.option("maxOffsetsPerTrigger", "60")
    example = found[1].replace("metrics_port=8080", "metrics_port=0").replace('"copy-checkpoint"', repr(str(bench.folder / "checkpoint")))
    shown: list[Any] = []
    names: dict[str, Any] = {"uri": bench.uri, "spark": bench.spark, "log": source, "print": shown.append}
    exec(example, names)
    listener, query = names["listener"], names["query"]
    assert isinstance(listener, LagListener)
    try:
        (row,), _ = shown
        assert (row.query, row.log, row.position, row.records_behind) == ("copy", log, 100, 0)
        if HAS_LIMITS:
            assert [one.records_behind for progress in query.recentProgress for one in lag_of(progress)] == [40, 0]
            assert [progress["numInputRows"] for progress in query.recentProgress] == [60, 40]
        # PySpark 4.1 says that a batch is committed when it plans the next one.
        expected = [("copy", 100, 0)] if HAS_LIMITS else []
        wait_until(lambda: [_short(one) for one in _consumers(bench, log)] == expected, 60.0, "the last save")
        wait_until(lambda: listener.rows() == [], 30.0, "the end of the query, as Spark reports it to listeners")
        assert listener.address is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{listener.address[1]}/metrics", timeout=20) as answer:
            assert answer.status == 200
    finally:
        bench.spark.streams.removeListener(listener)
        listener.close()


def _consumers(bench: Bench, log: str) -> list[ConsumerInfo]:
    async def ask(client: Client) -> list[ConsumerInfo]:
        return await Logs(client).consumers(log)

    return bench.run(ask)


def _short(one: ConsumerInfo) -> tuple[str, int, int]:
    return one.name, one.position, one.lag
