"""The audit log."""

from __future__ import annotations

import json
import logging

import pytest

from triplicate.security import AUDIT_LOGGER, audit, audit_line


def test_an_event_is_one_line_of_json_with_its_time() -> None:
    line = audit_line("login refused", 1_700_000_000_123_456, {"role": "anna", "address": "192.0.2.1", "tls": None})
    assert line == '{"time":"2023-11-14T22:13:20.123Z","event":"login refused","role":"anna","address":"192.0.2.1","tls":null}'


def test_a_value_that_a_client_chose_can_neither_begin_a_line_nor_fill_the_log() -> None:
    line = audit_line("login refused", 0, {"role": "anna\n\u2028\r" + 10_000 * "x"})
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 700
    assert json.loads(line)["role"].startswith("anna\n\u2028\rxxx")


def test_events_go_to_the_logger_of_the_audit(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, AUDIT_LOGGER):
        audit("login accepted", 0, {"role": "anna"})
    assert [(record.name, json.loads(record.message)["role"]) for record in caplog.records] == [(AUDIT_LOGGER, "anna")]
