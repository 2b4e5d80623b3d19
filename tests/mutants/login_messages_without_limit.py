"""A client that has not logged in may send messages as large as any other."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_an_oversized_message_is_refused_by_its_size",
]


def apply(patch: Any) -> None:
    from contextlib import nullcontext

    from triplicate.sql.pg.protocol.message_stream import MessageStream

    patch(MessageStream, "limited", lambda self, limit_bytes: nullcontext())
