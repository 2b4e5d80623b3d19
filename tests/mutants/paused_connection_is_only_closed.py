"""A connection is closed without looking whether it is paused: asyncio ignores that where the peer has ended TLS meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TESTS = [
    "tests/unit/runtime/test_real_start_tls.py::test_a_connection_that_the_peer_ended_while_it_was_paused_closes",
    "tests/unit/bookie/server/test_doorkeeper_tls.py::test_a_paused_connection_that_the_client_has_ended_goes_with_the_bookie",
    "tests/unit/sql/pg/protocol/test_message_stream.py::test_a_paused_connection_is_read_again_before_it_is_closed",
    "tests/unit/kv/resp/test_client_stream.py::test_a_paused_connection_is_read_again_before_it_is_closed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate import runtime
    from triplicate.bookie.server import server_connection
    from triplicate.kv.resp import client_stream
    from triplicate.sql.pg.protocol import message_stream

    def close_transport(transport: asyncio.Transport) -> None:
        transport.close()

    for module in (runtime, server_connection, message_stream, client_stream):
        patch(module, "close_transport", close_transport)
