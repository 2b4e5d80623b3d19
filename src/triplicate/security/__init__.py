"""Security: certificates, the TLS identity of a process, verifiers of passwords, secrets in files."""

from triplicate.security.authority import Authority, CertificateAndKey, CertificateFacts, facts_of, split_certificates
from triplicate.security.certificate_store import CertificateStore, StoredCertificate
from triplicate.security.core.scram_verifier import ScramVerifier
from triplicate.security.secret_files import check_private, make_private_directory, read_secret_file, write_private
from triplicate.security.tls import HANDSHAKE_TIMEOUT_S, ClientCertificates, TlsIdentity

__all__ = [
    "HANDSHAKE_TIMEOUT_S",
    "Authority",
    "CertificateAndKey",
    "CertificateFacts",
    "CertificateStore",
    "ClientCertificates",
    "ScramVerifier",
    "StoredCertificate",
    "TlsIdentity",
    "check_private",
    "facts_of",
    "make_private_directory",
    "read_secret_file",
    "split_certificates",
    "write_private",
]
