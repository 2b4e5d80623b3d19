"""Security: certificates, the TLS identity of a process, verifiers of passwords, secrets in files."""

from triplicate.security.authority import Authority, CertificateAndKey, CertificateFacts, facts_of, split_certificates
from triplicate.security.certificate_store import CertificateStore, StoredCertificate
from triplicate.security.core import digest_md5
from triplicate.security.core.page_protection import is_loopback, page_gaps
from triplicate.security.core.scram_verifier import ScramVerifier
from triplicate.security.expiry import WARN_DAYS, ExpiringFile, expiring_files, expiry_problem
from triplicate.security.sasl_login import SaslLogin, ServerConnection
from triplicate.security.secret_files import check_private, make_private_directory, read_secret_file, write_private
from triplicate.security.tls import HANDSHAKE_TIMEOUT_S, ClientCertificates, TlsIdentity
from triplicate.security.tls_failures import reason_of_tls_failure
from triplicate.security.token_file import TokenFile

__all__ = [
    "HANDSHAKE_TIMEOUT_S",
    "WARN_DAYS",
    "Authority",
    "CertificateAndKey",
    "CertificateFacts",
    "CertificateStore",
    "ClientCertificates",
    "ExpiringFile",
    "SaslLogin",
    "ScramVerifier",
    "ServerConnection",
    "StoredCertificate",
    "TlsIdentity",
    "TokenFile",
    "check_private",
    "digest_md5",
    "expiring_files",
    "expiry_problem",
    "facts_of",
    "is_loopback",
    "make_private_directory",
    "page_gaps",
    "read_secret_file",
    "reason_of_tls_failure",
    "split_certificates",
    "write_private",
]
