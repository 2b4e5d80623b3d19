"""Lines of a server's log have a level that alerts can use, and a time with its zone."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from triplicate.cli.process.serving import LogTrace, UtcFormatter, configure_log


@contextmanager
def plain_root() -> Iterator[None]:
    """The root logger as in a new process; as it was, afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def lines_of(level: str, capsys: pytest.CaptureFixture[str], *kinds: str, **facts: object) -> list[str]:
    with plain_root():
        configure_log(level)
        trace = LogTrace()
        for kind in kinds:
            trace(kind, **facts)
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("bookie.disks_full", "ERROR"),
        ("replica.diverged", "ERROR"),
        ("node.failed", "ERROR"),
        ("bookie.failed", "ERROR"),
        ("bookie.disks_nearly_full", "WARNING"),
        ("log.take_over_lost", "WARNING"),
        ("replica.retry", "WARNING"),
    ],
)
def test_a_log_of_warnings_shows_trouble(kind: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines_of("warning", capsys, kind, used=0.97)
    assert f" {level} triplicate: {kind} used=0.97" in line


def test_a_log_of_warnings_hides_what_goes_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of("warning", capsys, "bookie.registered", "replica.role", "client.ledger_created", "some.new_trace") == []


def test_a_log_of_errors_hides_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of("error", capsys, "replica.retry", "replica.diverged")
    assert [line.split()[3] for line in lines] == ["replica.diverged"]


def test_a_connection_is_a_warning_when_it_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of("warning", capsys, "metadata.connection", state="connected") == []
    assert len(lines_of("warning", capsys, "metadata.connection", state="suspended")) == 1


def test_times_are_utc_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines_of("info", capsys, "bookie.registered")
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO ", line)
    record = logging.LogRecord("triplicate", logging.INFO, "", 0, "x", None, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    assert UtcFormatter().format(record).startswith("2023-11-14T22:13:20.250Z ")


def test_a_fact_with_line_breaks_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines_of("info", capsys, "bookie.failed", error="one\ntwo\r\nthree")
    assert line.endswith(r"error=one\ntwo\r\nthree")
