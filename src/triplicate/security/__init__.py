"""Security: certificates, the TLS identity of a process, verifiers of passwords, secrets in files."""

from triplicate.security.authority import Authority, CertificateAndKey, CertificateFacts, facts_of
from triplicate.security.core import digest_md5
from triplicate.security.core.scram_verifier import ScramVerifier
from triplicate.security.secret_files import check_private, read_secret_file
from triplicate.security.tls import HANDSHAKE_TIMEOUT_S, ClientCertificates, TlsIdentity

__all__ = [
    "HANDSHAKE_TIMEOUT_S",
    "Authority",
    "CertificateAndKey",
    "CertificateFacts",
    "ClientCertificates",
    "ScramVerifier",
    "TlsIdentity",
    "check_private",
    "digest_md5",
    "facts_of",
    "read_secret_file",
]
