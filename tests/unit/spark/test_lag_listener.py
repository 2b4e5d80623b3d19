"""The listener: rows of living queries, the cluster's answers, errors, and the page for Prometheus. No JVM."""

from __future__ import annotations

import logging
import urllib.request
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.spark.progress_rig import offset, progress
from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.errors import ArgumentError, ConnectionLost, NoSuchLedger
from triplicate.log import LogSettings
from triplicate.spark import LagListener
from triplicate.spark.cluster import access
from triplicate.spark.core.offsets import LogPosition

HOUR_S = 3600.0


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        yield made


@pytest.fixture
def listener(cluster: Stand) -> Iterator[LagListener]:
    """Asks only on request."""
    with LagListener("memory:", interval_s=HOUR_S) as made:
        yield made


def report(listener: LagListener, *sources: tuple[str | None, str | None], **fields: Any) -> None:
    listener.onQueryProgress(SimpleNamespace(progress=progress(*sources, **fields)))  # type: ignore[arg-type]


def end(listener: LagListener, run_id: str) -> None:
    listener.onQueryTerminated(SimpleNamespace(runId=run_id))  # type: ignore[arg-type]


def seen(listener: LagListener) -> list[tuple[str, str, int | None, float | None]]:
    return [(row.query, row.log, row.records_behind, row.seconds_behind) for row in listener.rows()]


def test_a_query_has_its_newest_rows_until_it_ends() -> None:
    with LagListener() as listener:
        report(listener, (offset(a=(1, "x")), offset(a=(9, "x"))), name="one", runId="1")
        report(listener, (offset(a=(5, "x")), offset(a=(9, "x"))), name="one", runId="1")
        report(listener, (offset(b=(0, "y")), offset(b=(9, "y"))), name="two", runId="2")
        report(listener, ('{"topic": {"0": 1}}', None), name="of another source", runId="3")
        assert seen(listener) == [("two", "b", 9, None), ("one", "a", 4, None)]
        # A query that is started again has a new run; the end of the one before comes later.
        report(listener, (offset(a=(9, "x")), offset(a=(9, "x"))), name="one", runId="4")
        end(listener, "1")
        end(listener, "2")
        assert seen(listener) == [("one", "a", 0, None)]


def test_the_cluster_says_how_many_records_are_unread_and_since_when(cluster: Stand, listener: LagListener) -> None:
    cluster.write_at(1_000_000, b"0", b"1")
    cluster.write_at(1_040_000, b"2")
    cluster.stage.wall_us = 1_100_000_000
    log_id = cluster.log_id()
    report(listener, (offset(events=(2, log_id)), offset(events=(2, log_id))), name="copy")
    assert seen(listener) == [("copy", LOG, 0, None)], "as of the planning of the batch"
    listener.ask()
    assert seen(listener) == [("copy", LOG, 1, 60.0)]
    # The query stands still, and the clock goes on.
    cluster.stage.wall_us = 1_200_000_000
    listener.ask()
    assert seen(listener) == [("copy", LOG, 1, 160.0)]
    # It reads on before the next question.
    report(listener, (offset(events=(3, log_id)), offset(events=(3, log_id))), name="copy")
    assert seen(listener) == [("copy", LOG, 0, 0.0)]
    listener.ask()
    assert seen(listener) == [("copy", LOG, 0, 0.0)]


def test_truncated_records_are_not_behind(cluster: Stand, listener: LagListener) -> None:
    cluster.write_at(1_000, b"0")
    cluster.write_at(2_000, b"1", b"2")
    cluster.loop.call(cluster.logs.truncate(LOG, 1))
    cluster.stage.wall_us = 5_000_000
    report(listener, (offset(events=(0, cluster.log_id())), None))
    listener.ask()
    assert seen(listener) == [("6a19", LOG, 2, 3.0)]


def test_two_queries_at_different_positions_of_a_log_have_each_its_answer(cluster: Stand, listener: LagListener) -> None:
    cluster.write(*(b"%d" % number for number in range(5)))
    log_id = cluster.log_id()
    report(listener, (offset(events=(1, log_id)), None), (offset(events=(4, log_id)), None), name="two", runId="1")
    report(listener, (offset(events=(2, log_id)), None), name="one", runId="2")
    listener.ask()
    assert [(row.query, row.source, row.records_behind) for row in listener.rows()] == [("two", 0, 4), ("one", 0, 3), ("two", 1, 1)]


def test_a_log_that_is_gone_or_another_has_no_answer(cluster: Stand, listener: LagListener) -> None:
    cluster.write(b"0")
    cluster.loop.call(cluster.logs.create("other", LogSettings()))
    cluster.write(b"0", b"1", log="other")
    report(
        listener,
        (offset(events=(0, "an id of before"), gone=(0, "x"), other=(1, cluster.log_id("other"))), offset(events=(7, "an id of before"))),
    )
    listener.ask()
    assert seen(listener)[0] == ("6a19", LOG, 7, None)
    assert {(row.log, row.records_behind) for row in listener.rows()} == {(LOG, 7), ("gone", None), ("other", 1)}


def test_an_error_is_logged_once_and_leaves_the_rows_of_the_progress(
    cluster: Stand, listener: LagListener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.write(b"0")
    log_id = cluster.log_id()
    report(listener, (offset(events=(0, log_id)), offset(events=(0, log_id))), name="copy")
    listener.ask()
    assert seen(listener)[0][2] == 1
    answer = access.LogAccess.unread

    def fails(*_: object) -> Any:
        raise ConnectionLost("no server answers")

    with caplog.at_level(logging.WARNING, "triplicate"):
        monkeypatch.setattr(access.LogAccess, "unread", fails)
        listener.ask()
        listener.ask()
        assert seen(listener) == [("copy", LOG, 0, None)], "an old answer is not shown as a new one"
        assert [record.message for record in caplog.records] == [
            "triplicate: the cluster does not say how far streams are behind: ConnectionLost: no server answers"
        ]
        monkeypatch.setattr(access.LogAccess, "unread", answer)
        listener.ask()
        assert seen(listener)[0][2] == 1


def test_a_log_whose_records_cannot_be_read_does_not_hide_the_others(
    cluster: Stand, listener: LagListener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.loop.call(cluster.logs.create("other", LogSettings()))
    cluster.write_at(1_000, b"0")
    cluster.write_at(1_000, b"0", b"1", log="other")
    cluster.stage.wall_us = 3_000_000
    report(listener, (offset(events=(0, cluster.log_id()), other=(0, cluster.log_id("other"))), None), name="copy")
    plan = cluster.logs.plan

    async def fails_for_one(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "other":
            raise NoSuchLedger("ledger 7 does not exist")
        return await plan(name, *arguments, **options)

    monkeypatch.setattr(cluster.logs, "plan", fails_for_one)
    with caplog.at_level(logging.WARNING, "triplicate"):
        listener.ask()
        listener.ask()
    assert seen(listener) == [("copy", "other", 2, None), ("copy", LOG, 1, 2.0)]
    (record,) = caplog.records
    assert record.message.endswith("log 'other': ledger 7 does not exist")


def test_a_question_ends_after_its_limit(cluster: Stand) -> None:
    cluster.write(b"0")
    with pytest.raises(TimeoutError):
        cluster.access.unread({LOG: LogPosition(0, cluster.log_id())}, 0.0)


def test_the_page_has_no_series_of_a_query_that_ended() -> None:
    with LagListener(metrics_port=0) as listener:
        assert listener.address is not None
        host, port = listener.address
        assert host == "127.0.0.1"

        def page() -> list[str]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                return [line for line in answer.read().decode().splitlines() if not line.startswith("#")]

        assert page() == []
        run_id = str(uuid.UUID(int=7))
        report(listener, (offset(a=(1, "x"), b=(2, "y")), offset(a=(9, "x"), b=(2, "y"))), name='a "copy"', runId=run_id)
        assert page() == [
            'triplicate_spark_records_behind{log="a",query="a \\"copy\\"",source="0"} 8.0',
            'triplicate_spark_records_behind{log="b",query="a \\"copy\\"",source="0"} 0.0',
            'triplicate_spark_batch{query="a \\"copy\\""} 4.0',
            'triplicate_spark_batch_seconds{query="a \\"copy\\""} 0.679',
            'triplicate_spark_rows_per_second{query="a \\"copy\\""} 7.4',
        ]
        end(listener, run_id)
        assert page() == []
    listener.close()


def test_an_interval_is_a_time() -> None:
    for interval_s in (0, -1.0, float("nan")):
        with pytest.raises(ArgumentError):
            LagListener(interval_s=interval_s)
