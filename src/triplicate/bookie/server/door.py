"""The door of a bookie: what all connections share for TLS, logins and rights.

A connection is admitted by its `Doorkeeper`. Until then it is half open: it can ask for TLS and log in, nothing else, and it costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from triplicate.bookie.server.door_metrics import DoorMetrics
from triplicate.bookie.server.door_policy import DoorPolicy
from triplicate.config import BookieSettings, SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Host, Metrics, Worker, sleep
from triplicate.security import (
    FULL_RIGHTS,
    PLAIN,
    FailedLogins,
    HalfOpenConnections,
    PasswordCheck,
    Rights,
    TlsIdentity,
    TokenBucket,
    User,
    UsersFile,
    doubling_delay_s,
)

CHECK_INTERVAL_S = 5.0
"""Interval at which the users of open connections and the certificate are checked, in seconds."""
TRACES_PER_S = 10
"""Traces of refusals per second. Whoever floods a bookie with connections does not flood its log."""
UNKNOWN_USERS_SECRET_BYTES = 16
CHECKS_MAX = 100
"""Passwords that wait for the worker. Each takes some milliseconds."""
DELAY_FIRST_S = 0.05
DELAY_LONGEST_S = 4.0
"""Bounds of the delay of a login's outcome after failed ones of its address, in seconds."""
FORGIVEN_S = 60.0
"""Time in which an address is forgiven one failed login, in seconds."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The owner of a connection, and its rights."""

    name: str
    """Of the user or the certificate; empty without authentication."""
    rights: Rights
    is_user: bool = False
    """Whether it is a user of the file, whose rights may change."""


ANYBODY = Principal("", FULL_RIGHTS)
"""Where no authentication is required."""


class Guest(Protocol):
    """A connection that is not admitted."""

    def refuse(self, reason: str) -> None:
        """Count, trace and abort it."""


class Admitted(Protocol):
    """An admitted connection."""

    peer: str
    """Its address, for messages."""

    def change_rights(self, rights: Rights) -> None:
        """From now on it may do this."""

    def drop(self, reason: str) -> None:
        """Abort it."""


class Door:
    """See the module's text.

    Args:
        identity: for TLS; None without.
        users: None where nobody logs in by a password.
        worker: compares passwords; None where none are sent.
    """

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        policy: DoorPolicy,
        metrics: DoorMetrics,
        identity: TlsIdentity | None,
        users: UsersFile | None,
        worker: Worker | None,
    ) -> None:
        now = host.clock.monotonic()
        self.host = host
        self.policy = policy
        self.metrics = metrics
        self.identity = identity
        self.users = users
        self.worker = worker
        self.timeout_s = settings.authentication_timeout_s
        self.half_open = HalfOpenConnections[Guest](settings.unauthenticated_connections, settings.unauthenticated_connections_per_address)
        self.failed_logins = FailedLogins(FORGIVEN_S)
        self.handshakes = TokenBucket(settings.handshakes_per_s, now)
        metrics.half_open.set_function(lambda: len(self.half_open))
        self._traces = TokenBucket(TRACES_PER_S, now)
        self._passed_over = 0
        """Refusals that were not traced since the last one that was."""
        self._checks = 0
        self._users_seen = users.generation if users is not None else 0
        self._admitted: dict[int, tuple[Admitted, Principal]] = {}
        """Open connections of users."""

    @classmethod
    def open(cls, host: Host, settings: BookieSettings, security: SecuritySettings, metrics: Metrics | None = None) -> Door:
        """Raises ConfigError: the settings contradict each other, or a file that they name cannot be used."""
        policy = DoorPolicy.of(settings, security)
        if policy.offers_tls and find_spec("cryptography") is None:
            raise ConfigError(f"bookie.tls = {settings.tls} needs the package cryptography: pip install 'triplicate[security]'")
        identity = TlsIdentity(security, host.clock, host.trace) if policy.offers_tls else None
        users = None
        if policy.by_sasl:
            secret = host.entropy.secret(UNKNOWN_USERS_SECRET_BYTES)
            users = UsersFile(settings.users_file, "bookie.users_file", host.clock, host.trace, secret)
        worker = host.new_worker("bookie-logins") if policy.by_sasl and PLAIN in policy.offered(has_tls=policy.offers_tls) else None
        door = cls(host, settings, policy, DoorMetrics(metrics), identity, users, worker)
        # Now, so that a wrong file stops the start.
        door.renew_certificate()
        return door

    async def aclose(self) -> None:
        if self.worker is not None:
            await self.worker.close()

    def login_delay_s(self, address: str) -> float:
        """The delay of the outcome of a login from this address, seconds.

        The outcome is delayed, be it good or bad: so a guess costs time, and a right password is never refused.
        """
        failures = self.failed_logins.failures(address, self.host.clock.monotonic())
        return doubling_delay_s(failures, DELAY_FIRST_S, min(self.timeout_s / 2, DELAY_LONGEST_S))

    @property
    def has_room_for_check(self) -> bool:
        """Whether another password may wait for the worker."""
        return self._checks < CHECKS_MAX

    async def compare(self, check: PasswordCheck) -> bool:
        """Whether it is the user's password. The caller has made sure that there is room."""
        assert self.worker is not None, "PLAIN is offered with a worker only"
        self._checks += 1
        try:
            return await self.worker.run(check.compare)
        finally:
            self._checks -= 1

    def refuse(self, reason: str, peer: str, **facts: object) -> None:
        """Count and trace a connection that is not admitted, or a request of it."""
        self.metrics.refused_logins.labels(reason).inc()
        self._trace("bookie.login_refused", peer=peer, reason=reason, **facts)

    def lack_right(self, right: str, count: int) -> None:
        """Count requests that are refused for want of a right."""
        self.metrics.refused_requests.labels(right).inc(count)

    def trace_lack(self, right: str, peer: str, principal: str, request: str) -> None:
        """Trace a request that is refused for want of a right."""
        self._trace("bookie.request_refused", peer=peer, principal=principal, right=right, request=request)

    def _trace(self, kind: str, **facts: object) -> None:
        if self._traces.wait_s(self.host.clock.monotonic()) > 0:
            self._traces.give_back()
            self._passed_over += 1
            return
        if self._passed_over:
            facts["passed_over"] = self._passed_over
            self._passed_over = 0
        self.host.trace(kind, **facts)

    def user_of_now(self, proven: User) -> User | None:
        """The user that a login has proven to be, with the rights of now; None if it was removed, or has another password now."""
        return self.users.same_user(proven) if self.users is not None else None

    def admit(self, connection: Admitted, principal: Principal) -> None:
        """Note an admitted connection, until `forget`."""
        if principal.is_user:
            self._admitted[id(connection)] = connection, principal

    def forget(self, connection: Admitted) -> None:
        """The connection is gone. Idempotent."""
        self._admitted.pop(id(connection), None)

    async def run(self) -> None:
        """Check the users and the certificate for ever."""
        while True:
            await sleep(self.host.clock, CHECK_INTERVAL_S)
            self.check_users()
            self.renew_certificate()

    def check_users(self) -> None:
        """Apply a changed file of users to open connections: a removed user's are ended, the others get the rights of now."""
        users = self.users
        if users is None:
            return
        users.refresh()
        if users.generation == self._users_seen:
            return
        self._users_seen = users.generation
        for connection, principal in list(self._admitted.values()):
            user = users.current(principal.name)
            if user is None:
                connection.drop("its user was removed")
            else:
                connection.change_rights(Rights.of(user.roles))

    def renew_certificate(self) -> None:
        """Read the identity's files again if they have changed; also without clients, so that an operator sees whether it worked."""
        if self.identity is not None:
            self.identity.server_context(self.policy.certificates)
