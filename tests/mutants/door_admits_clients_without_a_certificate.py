"""A client without a certificate passes where one is required, as one of an administrator."""

from __future__ import annotations

import ssl
from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_doorkeeper_tls.py::test_a_client_without_a_valid_certificate_is_refused_where_one_is_required"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server import server_connection
    from triplicate.security import ClientCertificates, PeerCertificate, TlsIdentity

    context_of = TlsIdentity.server_context

    def careless(self: TlsIdentity, clients: ClientCertificates) -> ssl.SSLContext:
        context = context_of(self, clients)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    patch(TlsIdentity, "server_context", careless)
    patch(server_connection, "peer_certificate", lambda transport: PeerCertificate("anybody", ("0:admin",)))
