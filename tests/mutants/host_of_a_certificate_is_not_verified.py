"""A client does not check that a certificate names the host that it connects to."""

from __future__ import annotations

import ssl
from typing import Any

TESTS = ["tests/unit/security/test_tls.py::test_a_client_refuses_a_server_that_is_not_proven"]


def apply(patch: Any) -> None:
    from triplicate.security.tls import TlsIdentity

    equip = TlsIdentity._equip

    def careless(self: TlsIdentity, context: ssl.SSLContext) -> None:
        equip(self, context)
        context.check_hostname = False

    patch(TlsIdentity, "_equip", careless)
