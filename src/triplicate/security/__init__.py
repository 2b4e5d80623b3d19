"""Security: certificates, the audit log, the TLS identity of a process, verifiers of passwords, secrets in files."""

from triplicate.security.audit import AUDIT_LOGGER, audit, audit_line
from triplicate.security.authority import Authority, CertificateAndKey, CertificateFacts, facts_of
from triplicate.security.core.scram_verifier import PASSWORD_BYTES_MAX, SALT_BYTES, ScramVerifier
from triplicate.security.secret_files import check_private, read_secret_file
from triplicate.security.tls import HANDSHAKE_TIMEOUT_S, ClientCertificates, TlsIdentity

__all__ = [
    "AUDIT_LOGGER",
    "HANDSHAKE_TIMEOUT_S",
    "PASSWORD_BYTES_MAX",
    "SALT_BYTES",
    "Authority",
    "CertificateAndKey",
    "CertificateFacts",
    "ClientCertificates",
    "ScramVerifier",
    "TlsIdentity",
    "audit",
    "audit_line",
    "check_private",
    "facts_of",
    "read_secret_file",
]
