"""A client accepts any certificate of its authority for any bookie."""

from __future__ import annotations

import ssl
from typing import Any

TESTS = [
    "tests/unit/client/connection/test_handshake.py::test_the_certificate_must_name_the_host_under_which_the_bookie_is_registered",
]


def apply(patch: Any) -> None:
    from triplicate.client.connection import handshake

    class CarelessIdentity:
        def __init__(self, identity: Any) -> None:
            self._identity = identity

        def client_context(self) -> ssl.SSLContext:
            context: ssl.SSLContext = self._identity.client_context()
            context.check_hostname = False
            return context

    start = handshake.Handshake._start_tls

    async def careless(self: Any, tls: Any, transport: Any, address: str, deadline: float) -> Any:
        identity: Any = CarelessIdentity(tls)
        return await start(self, identity, transport, address, deadline)

    patch(handshake.Handshake, "_start_tls", careless)
