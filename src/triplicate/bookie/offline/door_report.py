"""The protection of a bookie's door, by its settings and their files: for operators, without a running bookie."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.bookie.server.door_policy import DoorPolicy
from triplicate.config import BookieSettings, SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Host
from triplicate.security import TlsIdentity, facts_of, read_users

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class DoorReport:
    """See the module's text."""

    tls: str
    client_certificates: str
    authentication: str
    mechanisms: tuple[str, ...]
    """Mechanisms that connections may use at most; empty without logins by users."""
    users: int
    """Users who may log in."""
    certificate_days: float | None
    """Days until the certificate expires; None without TLS."""
    summary: str

    @property
    def is_open(self) -> bool:
        """Whether everybody may do everything, in clear."""
        return self.tls == "off" and self.authentication == "none"


def door_report(settings: BookieSettings, security: SecuritySettings, host: Host) -> DoorReport:
    """Read the files that a start of the bookie would read.

    Raises:
        ConfigError: the bookie would not start with them.
    """
    policy = DoorPolicy.of(settings, security)
    days: float | None = None
    if policy.offers_tls:
        TlsIdentity(security, host.clock, host.trace).server_context(policy.certificates)
        days = (_expires_s(security) - host.clock.wall_us() / 1e6) / DAY_S
    users = read_users(settings.users_file, "bookie.users_file") if policy.by_sasl else {}
    return DoorReport(
        settings.tls,
        settings.client_certificates,
        settings.authentication,
        policy.offered(has_tls=policy.offers_tls) if policy.by_sasl else (),
        len(users),
        days,
        policy.summary + (f" ({len(users)} users)" if policy.by_sasl else ""),
    )


def _expires_s(security: SecuritySettings) -> float:
    path = security.certificate_file
    try:
        with open(path, "rb") as stream:
            return facts_of(stream.read()).expires_s
    except OSError as error:
        raise ConfigError(f"security.certificate_file: {path} cannot be read: {error.strerror}") from None
