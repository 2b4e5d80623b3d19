"""The subject of a client's certificate; one that cannot be read counts as none."""

from __future__ import annotations

import ssl
import time

from triplicate.security import Authority
from triplicate.security.peer_certificate import PeerCertificate, parse_peer_certificate


def test_name_and_units_are_read_in_the_order_of_the_certificate() -> None:
    now = time.time()
    issued = Authority.create("an authority", now, 1000.0).issue("client", (), now, 1000.0, ("0:read", "second"))
    der = ssl.PEM_cert_to_DER_cert(issued.certificate_pem.decode())
    assert parse_peer_certificate(der) == PeerCertificate("client", ("0:read", "second"))
    assert parse_peer_certificate(der[:-1]) is None
    assert parse_peer_certificate(b"no certificate") is None
