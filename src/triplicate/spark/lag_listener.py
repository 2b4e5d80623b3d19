"""A listener of Spark that keeps how far the streams of a session are behind, and serves it to Prometheus."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from triplicate.blocking import BackgroundLoop
from triplicate.config.values import check_seconds
from triplicate.errors import ArgumentError, TriplicateError
from triplicate.runtime import Listener, Metrics, real_host, serve_metrics
from triplicate.spark.cluster import access
from triplicate.spark.core.offsets import LogPosition
from triplicate.spark.core.stream_lag import LogLag, lag_of

INTERVAL_S = 10.0
ROWS_SHOWN = 1000
"""Maximum number of logs on the metrics page: those that are behind most. A pattern may match any number."""
_GAUGES: tuple[tuple[str, str, Callable[[LogLag], float | None]], ...] = (
    ("triplicate_spark_records_behind", "Records of a log that a stream has not processed yet.", lambda row: row.records_behind),
    ("triplicate_spark_seconds_behind", "Seconds since the first of these records was written.", lambda row: row.seconds_behind),
    ("triplicate_spark_batch", "Number of a stream's last micro-batch.", lambda row: row.batch),
    ("triplicate_spark_batch_seconds", "Duration of a stream's last micro-batch.", lambda row: row.batch_s),
    ("triplicate_spark_rows_per_second", "Rows that a stream processed per second in it.", lambda row: row.rows_per_s),
)
_OF_LOGS = 2
"""The number of gauges above that are of a log; the others are of the query."""
_logger = logging.getLogger(__name__)


class LagListener(StreamingQueryListener):
    """``spark.streams.addListener(LagListener(uri, metrics_port=8080))``: how far each stream is behind its logs.

    Spark's progress says it as of the planning of the last micro-batch. With the address of a cluster, a thread of the listener also asks
    the cluster, so that a query that hangs or waits is seen to fall behind. Nothing of this delays or ends a query.

    Args:
        metadata_uri: of the cluster that the streams read; empty: only Spark's progress counts.
        metrics_port: serves the metrics at ``/metrics`` on loopback; 0 for a free port (`address`), None for no page.
        interval_s: time in seconds between two questions, and the limit of each.
        ledger_password, keys_file: as the options of the source.

    Raises:
        OSError: the port is in use. ArgumentError: the interval is no time.
    """

    def __init__(
        self,
        metadata_uri: str = "",
        *,
        metrics_port: int | None = None,
        interval_s: float = INTERVAL_S,
        ledger_password: str = "",
        keys_file: str = "",
    ) -> None:
        self._access = (metadata_uri, ledger_password, keys_file)
        if check_seconds("the interval of the questions", interval_s) == 0:
            raise ArgumentError("the interval of the questions is more than 0 seconds")
        self._interval_s = interval_s
        self._reported: dict[str, list[LogLag]] = {}
        """By run of a query; one that was replaced ends after the next one began."""
        self._asked: dict[tuple[str, int, str], tuple[str | None, access.Unread]] = {}
        """By run, source and log: the log's id, and the cluster's last answer."""
        self._failed = ""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.address: tuple[str, int] | None = None
        """Where the metrics are served, or None."""
        self._pages: BackgroundLoop | None = None
        if metrics_port is not None:
            self._pages = BackgroundLoop("triplicate-metrics")
            try:
                self._listener = self._pages.call(self._serve(metrics_port))
            except BaseException:
                self._pages.close()
                raise
            self.address = self._listener.address
        if metadata_uri:
            threading.Thread(target=self._ask_repeatedly, name="triplicate-lag", daemon=True).start()

    async def _serve(self, port: int) -> Listener:
        return await serve_metrics(real_host("spark"), _Page(self), port)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Does nothing: a query has no position before its first progress."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        rows = lag_of(event.progress)
        if rows:
            with self._lock:
                self._reported[rows[0].run_id] = rows

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Does nothing: the position is that of the last progress."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        with self._lock:
            self._reported.pop(str(event.runId), None)

    def rows(self) -> list[LogLag]:
        """One row for each query, source and log; those that are behind most come first."""
        with self._lock:
            rows = [self._completed(row) for rows in self._reported.values() for row in rows]
        return sorted(rows, key=lambda row: (-(row.records_behind or 0), row.query, row.source, row.log))

    def _completed(self, row: LogLag) -> LogLag:
        """A row with the cluster's last answer, also where the query has moved on since."""
        log_id, unread = self._asked.get((row.run_id, row.source, row.log), (None, None))
        if unread is None or log_id != row.log_id:
            return row
        behind = max(row.records_behind or 0, unread.end - max(row.position, unread.first))
        return replace(row, records_behind=behind, seconds_behind=unread.age_s if unread.end > row.position else 0.0)

    def metrics(self) -> bytes:
        """The rows in Prometheus' text format, for a page of your own or a file."""
        metrics = Metrics()
        rows = self.rows()[:ROWS_SHOWN]
        for place, (name, text, value_of) in enumerate(_GAUGES):
            labels = ("query", "source", "log") if place < _OF_LOGS else ("query",)
            gauge = metrics.gauge(name, text, labels)
            for row in rows:
                value = value_of(row)
                if value is not None:
                    gauge.labels(*(str(getattr(row, label)) for label in labels)).set(value)
        return metrics.expose()

    def _ask_repeatedly(self) -> None:
        while not self._ended.wait(self._interval_s):
            self.ask()

    def ask(self) -> None:
        """Ask the cluster now, at most for the interval. An error is logged once; the rows are those of Spark's progress then."""
        with self._lock:
            rows = [row for rows in self._reported.values() for row in rows]
        # Several queries may have read one log, to different positions.
        rounds: list[dict[str, LogLag]] = []
        for row in rows:
            chosen = next((one for one in rounds if row.log not in one), None)
            rounds.append({row.log: row}) if chosen is None else chosen.update({row.log: row})
        asked: dict[tuple[str, int, str], tuple[str | None, access.Unread]] = {}
        failed = ""
        try:
            for one in rounds:
                with access.logs(*self._access) as logs:
                    found = logs.unread({log: LogPosition(row.position, row.log_id) for log, row in one.items()}, self._interval_s)
                for log, unread in found.items():
                    asked[one[log].run_id, one[log].source, log] = one[log].log_id, unread
                    failed = failed or unread.error
        except (TriplicateError, OSError) as error:
            failed = f"{type(error).__name__}: {error}"
        if failed and not self._failed:
            _logger.warning("triplicate: the cluster does not say how far streams are behind: %s", failed)
        self._failed = failed
        with self._lock:
            self._asked = asked

    def close(self) -> None:
        """End the thread and the page. Idempotent. Spark has a listener until ``spark.streams.removeListener``."""
        self._ended.set()
        pages, self._pages = self._pages, None
        if pages is not None:
            pages.call(self._listener.close())  # uvloop does not end before its listeners.
            pages.close()

    def __enter__(self) -> LagListener:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class _Page(Metrics):
    """The metrics of a listener at the time of the request: no series outlives its query."""

    def __init__(self, listener: LagListener) -> None:
        super().__init__()
        self._listener = listener

    def expose(self) -> bytes:
        return self._listener.metrics()
