"""A connection that leaves, or is crowded out, while it waits for its TLS handshake keeps those behind it waiting, at a bookie and at a node."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/bookie/server/test_doorkeeper_attacks.py::test_connections_that_were_crowded_out_keep_no_other_handshake_waiting",
    "tests/unit/sql/pg/protocol/test_client_connections_half_open.py::test_handshakes_beyond_the_rate_wait_their_turn_and_those_that_come_too_late_are_refused",
    "tests/unit/kv/resp/test_resp_connections_half_open.py::test_connections_that_have_left_or_were_crowded_out_keep_no_other_handshake_waiting",
]


def apply(patch: Any) -> None:
    from triplicate.security import TokenBucket

    patch(TokenBucket, "give_back", lambda self: None)
