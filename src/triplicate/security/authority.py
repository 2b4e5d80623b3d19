"""A small certificate authority: its own certificate, and certificates for servers and clients. Keys are of the curve P-256.

`cryptography` is imported where it is used: a process without TLS does not need it.

Source: RFC 5280; the documentation of `cryptography.x509`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from triplicate.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

CLOCK_ALLOWANCE = timedelta(minutes=10)
"""A certificate is valid from this time before its making, so that machines whose clocks are behind accept it."""


@dataclass(frozen=True, slots=True)
class CertificateAndKey:
    """One certificate with its private key, both as PEM; the key is PKCS #8 without a password."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The facts that operators need of a certificate."""

    common_name: str
    units: tuple[str, ...]
    """Organisational units. BookKeeper reads roles from them."""
    hosts: tuple[str, ...]
    """Names and addresses that the certificate is for."""
    expires_s: float
    """Seconds since the epoch."""
    is_authority: bool
    issuer: str = ""
    """Common name of the authority that signed it."""
    fingerprint: str = ""
    """SHA-256 of the certificate, as hexadecimal digits."""


class Authority:
    """An authority with its private key."""

    def __init__(self, certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, common_name: str, now_s: float, valid_s: float) -> Authority:
        """A new authority, signed by itself.

        Args:
            now_s: seconds since the epoch.
            valid_s: how long it is valid, in seconds.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(common_name, ())
        builder = (
            _builder(subject, subject, now_s, valid_s)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(_signed(builder, key), key)

    @classmethod
    def load(cls, certificate_pem: bytes, key_pem: bytes) -> Authority:
        """Raises ConfigError: they are no authority with its key."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            certificate = x509.load_pem_x509_certificate(certificate_pem)
            key = load_pem_private_key(key_pem, password=None)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"the authority's files are no PEM certificate with a key without a password ({error})") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ConfigError("the authority's key does not belong to its certificate")
        if not facts_of(certificate_pem).is_authority:
            raise ConfigError("the certificate is not one of an authority, and nobody would trust what it signs")
        return cls(certificate, key)

    @property
    def pem(self) -> CertificateAndKey:
        return _as_pem(self._certificate, self._key)

    def issue(self, common_name: str, hosts: Sequence[str], now_s: float, valid_s: float, units: Sequence[str] = ()) -> CertificateAndKey:
        """A new key, and a certificate for it that serves for servers and clients.

        Args:
            common_name: of the process or the user.
            hosts: names and addresses at which clients reach the server; none for a certificate of a client only.
            now_s: seconds since the epoch. valid_s: seconds; not beyond the authority's own end.
            units: organisational units, such as roles.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        until_s = min(now_s + valid_s, self._certificate.not_valid_after_utc.timestamp())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(_name(common_name, units), self._certificate.subject, now_s, until_s - now_s)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            uses.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        return _as_pem(_signed(builder, self._key), key)


def facts_of(certificate_pem: bytes) -> CertificateFacts:
    """The facts of the first certificate of a PEM file.

    Raises:
        ConfigError: it holds none.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    certificate = _load(certificate_pem)
    names = [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    units = tuple(str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME))
    hosts: tuple[str, ...] = ()
    is_authority = False
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            hosts = tuple(str(each.value) for each in extension.value)
        elif isinstance(extension.value, x509.BasicConstraints):
            is_authority = extension.value.ca
    issuers = [str(each.value) for each in certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return CertificateFacts(
        names[0] if names else "",
        units,
        hosts,
        certificate.not_valid_after_utc.timestamp(),
        is_authority,
        issuers[0] if issuers else "",
        certificate.fingerprint(hashes.SHA256()).hex(),
    )


def key_belongs(certificate_pem: bytes, key_pem: bytes) -> bool:
    """Whether a private key is that of a certificate.

    Raises:
        ConfigError: one of them cannot be read.
    """
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"this is no private key in PEM form without a password ({error})") from None
    return key.public_key() == _load(certificate_pem).public_key()


def is_signed_by(certificate_pem: bytes, authority_pem: bytes) -> bool:
    """Whether a certificate bears the signature of an authority.

    Raises:
        ConfigError: one of them is no certificate.
    """
    from cryptography.exceptions import InvalidSignature

    certificate, authority = _load(certificate_pem), _load(authority_pem)
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def split_certificates(pem: bytes) -> tuple[bytes, ...]:
    """The certificates of a PEM file, one by one.

    Raises:
        ConfigError: it holds none, or one of them is damaged.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise ConfigError(f"this is no certificate in PEM form ({error})") from None
    return tuple(each.public_bytes(Encoding.PEM) for each in found)


def _load(certificate_pem: bytes) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate_pem)
    except ValueError as error:
        raise ConfigError(f"this is no certificate in PEM form ({error})") from None


def end_point_hash(certificate_pem: bytes) -> bytes | None:
    """The hash of the first certificate of a PEM file for the channel binding tls-server-end-point. Source: RFC 5929, 4.1.

    Returns:
        None where the certificate's signature has no hash of its own, as Ed25519.

    Raises:
        ConfigError: it holds no certificate.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
    except ValueError as error:
        raise ConfigError(f"this is no certificate in PEM form ({error})") from None
    signed = certificate.signature_hash_algorithm
    if signed is None:
        return None
    return certificate.fingerprint(hashes.SHA256() if signed.name in ("md5", "sha1") else signed)


def _name(common_name: str, units: Sequence[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        parts += [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit) for unit in units]
    except ValueError as error:
        raise ConfigError(f"{common_name!r} cannot be the name in a certificate: {error}") from None
    return x509.Name(parts)


def _builder(subject: x509.Name, issuer: x509.Name, now_s: float, valid_s: float) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.fromtimestamp(now_s, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_ALLOWANCE)
        .not_valid_after(now + timedelta(seconds=valid_s))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass  # It is a name and no address.
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise ConfigError(f"{host!r} cannot be a host in a certificate: {error}") from None


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _as_pem(certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> CertificateAndKey:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return CertificateAndKey(certificate.public_bytes(Encoding.PEM), key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
