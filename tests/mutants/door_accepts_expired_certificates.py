"""The certificate of a client may have expired."""

from __future__ import annotations

import ssl
from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_doorkeeper_tls.py::test_a_client_without_a_valid_certificate_is_refused_where_one_is_required"]
NO_CHECK_TIME = 0x200000


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.security import ClientCertificates, TlsIdentity

    context_of = TlsIdentity.server_context

    def careless(self: TlsIdentity, clients: ClientCertificates) -> ssl.SSLContext:
        context = context_of(self, clients)
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | NO_CHECK_TIME)
        return context

    patch(TlsIdentity, "server_context", careless)
