"""Security: certificates, TLS identities, verifiers of passwords, logins, secrets in files, the audit log."""

from triplicate.security.audit_lines import AUDIT_LOGGER, audit, audit_line
from triplicate.security.authority import Authority, CertificateAndKey, CertificateFacts, end_point_hash, facts_of, split_certificates
from triplicate.security.certificate_store import CertificateStore, StoredCertificate
from triplicate.security.core import digest_md5
from triplicate.security.core.address_key import address_key
from triplicate.security.core.bookie_rights import FULL_RIGHTS, NO_RIGHTS, BookieRole, Rights, parse_roles, roles_of_units
from triplicate.security.core.client_limits import UNANSWERED_CONNECTIONS, ClientLimits
from triplicate.security.core.failed_logins import FailedLogins, doubling_delay_s
from triplicate.security.core.half_open import HalfOpenConnections
from triplicate.security.core.page_protection import is_loopback, page_gaps
from triplicate.security.core.requirements import (
    gaps_of_autorecovery,
    gaps_of_bookie,
    gaps_of_client,
    gaps_of_embedded_node,
    gaps_of_metadata_client,
    gaps_of_node,
    refuse_gaps,
    resp_gaps,
)
from triplicate.security.core.sasl_server import (
    APACHE_PLUGIN,
    MECHANISMS,
    OWN_PLUGIN,
    PLAIN,
    LoginChallenge,
    LoginProven,
    LoginRefusal,
    LoginRefused,
    PasswordCheck,
    SaslServer,
)
from triplicate.security.core.scram_exchange import SCRAM, SCRAM_PLUS, ScramExchange, mock_verifier
from triplicate.security.core.scram_verifier import PASSWORD_BYTES_MAX, SALT_BYTES, ScramVerifier
from triplicate.security.core.token_bucket import TokenBucket
from triplicate.security.core.users import User, new_user
from triplicate.security.expiry import ExpiringFile, expiring_files
from triplicate.security.handshake_turns import HandshakeTurns, TooManyHandshakes
from triplicate.security.peer_certificate import PeerCertificate, peer_certificate
from triplicate.security.refusal_lines import REFUSALS_PER_S, RefusalLines
from triplicate.security.sasl_login import LoginConnection, SaslLogin
from triplicate.security.secret_files import check_private, make_private_directory, read_secret_file, write_private
from triplicate.security.tls import HANDSHAKE_TIMEOUT_S, ClientCertificates, TlsIdentity
from triplicate.security.tls_failures import reason_of_tls_failure
from triplicate.security.token_file import TokenFile
from triplicate.security.users_file import UsersFile, change_users, read_users, write_users

__all__ = [
    "APACHE_PLUGIN",
    "AUDIT_LOGGER",
    "FULL_RIGHTS",
    "HANDSHAKE_TIMEOUT_S",
    "MECHANISMS",
    "NO_RIGHTS",
    "OWN_PLUGIN",
    "PASSWORD_BYTES_MAX",
    "PLAIN",
    "REFUSALS_PER_S",
    "SALT_BYTES",
    "SCRAM",
    "SCRAM_PLUS",
    "UNANSWERED_CONNECTIONS",
    "Authority",
    "BookieRole",
    "CertificateAndKey",
    "CertificateFacts",
    "CertificateStore",
    "ClientCertificates",
    "ClientLimits",
    "ExpiringFile",
    "FailedLogins",
    "HalfOpenConnections",
    "HandshakeTurns",
    "LoginChallenge",
    "LoginConnection",
    "LoginProven",
    "LoginRefusal",
    "LoginRefused",
    "PasswordCheck",
    "PeerCertificate",
    "RefusalLines",
    "Rights",
    "SaslLogin",
    "SaslServer",
    "ScramExchange",
    "ScramVerifier",
    "StoredCertificate",
    "TlsIdentity",
    "TokenBucket",
    "TokenFile",
    "TooManyHandshakes",
    "User",
    "UsersFile",
    "address_key",
    "audit",
    "audit_line",
    "change_users",
    "check_private",
    "digest_md5",
    "doubling_delay_s",
    "end_point_hash",
    "expiring_files",
    "facts_of",
    "gaps_of_autorecovery",
    "gaps_of_bookie",
    "gaps_of_client",
    "gaps_of_embedded_node",
    "gaps_of_metadata_client",
    "gaps_of_node",
    "is_loopback",
    "make_private_directory",
    "mock_verifier",
    "new_user",
    "page_gaps",
    "parse_roles",
    "peer_certificate",
    "read_secret_file",
    "read_users",
    "reason_of_tls_failure",
    "refuse_gaps",
    "resp_gaps",
    "roles_of_units",
    "split_certificates",
    "write_private",
    "write_users",
]
