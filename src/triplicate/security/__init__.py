"""Security: certificates, the TLS identity of a process, verifiers of passwords, secrets in files."""

from triplicate.security.authority import Authority, CertificateAndKey, CertificateFacts, facts_of
from triplicate.security.core import digest_md5
from triplicate.security.core.rights import FULL_RIGHTS, NO_RIGHTS, BookieRole, Rights, parse_roles, roles_of_units
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
from triplicate.security.core.scram_verifier import ScramVerifier
from triplicate.security.core.users import User, new_user
from triplicate.security.peer_certificate import PeerCertificate, peer_certificate
from triplicate.security.sasl_login import LoginConnection, SaslLogin
from triplicate.security.secret_files import check_private, read_secret_file
from triplicate.security.tls import HANDSHAKE_TIMEOUT_S, ClientCertificates, TlsIdentity
from triplicate.security.tls_failures import reason_of_tls_failure
from triplicate.security.users_file import UsersFile, change_users, read_users, write_users

__all__ = [
    "APACHE_PLUGIN",
    "FULL_RIGHTS",
    "HANDSHAKE_TIMEOUT_S",
    "MECHANISMS",
    "NO_RIGHTS",
    "OWN_PLUGIN",
    "PLAIN",
    "SCRAM",
    "SCRAM_PLUS",
    "Authority",
    "BookieRole",
    "CertificateAndKey",
    "CertificateFacts",
    "ClientCertificates",
    "LoginChallenge",
    "LoginConnection",
    "LoginProven",
    "LoginRefusal",
    "LoginRefused",
    "PasswordCheck",
    "PeerCertificate",
    "Rights",
    "SaslLogin",
    "SaslServer",
    "ScramExchange",
    "ScramVerifier",
    "TlsIdentity",
    "User",
    "UsersFile",
    "change_users",
    "check_private",
    "digest_md5",
    "facts_of",
    "mock_verifier",
    "new_user",
    "parse_roles",
    "peer_certificate",
    "read_secret_file",
    "read_users",
    "reason_of_tls_failure",
    "roles_of_units",
    "write_users",
]
