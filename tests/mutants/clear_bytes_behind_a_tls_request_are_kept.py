"""Bytes in the clear behind a request for TLS are taken for encrypted ones."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_client_startup.py::test_what_is_sent_in_the_clear_behind_a_request_for_tls_is_not_taken_for_encrypted",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.rounds import RoundBuffer

    patch(RoundBuffer, "is_begun", property(lambda self: False))
