"""A client that requires TLS goes on in clear where a bookie has none."""

from __future__ import annotations

import asyncio
from typing import Any

TESTS = ["tests/unit/client/connection/test_handshake.py::test_a_bookie_without_tls_is_not_used_in_clear[v2]"]


def apply(patch: Any) -> None:
    from triplicate.client.connection.handshake import Handshake
    from triplicate.errors import Unauthorized

    start = Handshake._start_tls

    async def downgraded(self: Handshake, tls: Any, transport: asyncio.Transport, address: str, deadline: float) -> asyncio.Transport:
        try:
            return await start(self, tls, transport, address, deadline)
        except Unauthorized:
            return transport

    patch(Handshake, "_start_tls", downgraded)
