"""The certificate that the client of a TLS connection has shown."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """The subject of a certificate that the handshake has verified."""

    common_name: str
    units: tuple[str, ...]
    """Organisational units, in the order of the certificate."""


def peer_certificate(transport: asyncio.BaseTransport) -> PeerCertificate | None:
    """The peer's certificate.

    Returns:
        None without one, and where it cannot be read.
    """
    protection = transport.get_extra_info("ssl_object")
    shown = protection.getpeercert(True) if protection is not None else None
    return parse_peer_certificate(shown) if shown else None


def parse_peer_certificate(der: bytes) -> PeerCertificate | None:
    """The subject of a certificate (DER); None if it cannot be read. OpenSSL accepts some that this parser refuses."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        subject = x509.load_der_x509_certificate(der).subject
    except (ValueError, x509.InvalidVersion):
        return None
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    units = tuple(str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME))
    return PeerCertificate(names[0] if names else "", units)
