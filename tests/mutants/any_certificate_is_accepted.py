"""A client accepts the certificate of any authority."""

from __future__ import annotations

import ssl
from typing import Any

TESTS = [
    "tests/unit/security/test_tls.py::test_a_client_refuses_a_server_that_is_not_proven",
    "tests/unit/security/test_tls.py::test_a_client_that_does_not_verify_hosts_accepts_another_name_but_no_other_authority",
]


def apply(patch: Any) -> None:
    from triplicate.security.tls import TlsIdentity

    equip = TlsIdentity._equip

    def careless(self: TlsIdentity, context: ssl.SSLContext) -> None:
        equip(self, context)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

    patch(TlsIdentity, "_equip", careless)
