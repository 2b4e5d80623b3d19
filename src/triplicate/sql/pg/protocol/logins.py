"""The logins of a server's clients, from the opening of a connection to its place among the accepted ones; counted and audited."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace

from triplicate.errors import ProtocolError, SqlError
from triplicate.runtime import Host, Metrics
from triplicate.security import FailedLogins, RefusalLines, audit
from triplicate.sql.core.audit import AuditEvent, ConnectedClient
from triplicate.sql.core.interface import Database, Databases
from triplicate.sql.core.role_login import NO_LIMIT
from triplicate.sql.pg.protocol.client_startup import ClientStartup
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.role_proof import RoleProver
from triplicate.sql.pg.protocol.server_security import AuthenticationMode, ClientRefused, RefusalReason, ServerSecurity, TlsMode
from triplicate.sql.pg.protocol.settings import SessionSettings

REFUSED_LOGINS = "triplicate_node_refused_logins"


@dataclass(slots=True)
class Attempt:
    """A login under way: what is known of its client so far."""

    client: ConnectedClient


@dataclass(frozen=True, slots=True)
class Login:
    """A client that may be served."""

    client: ConnectedClient
    database: Database
    settings: SessionSettings
    role_limit: int
    """Connections that the role may have at this node, or `NO_LIMIT`."""
    method: str
    """``trust``, or the mechanism by which the role was proven."""


class Logins:
    """Lets clients log in.

    Args:
        startup: begins their connections.
        databases: clients connect to one of them by ``dbname``.
    """

    def __init__(
        self,
        host: Host,
        databases: Databases,
        security: ServerSecurity,
        startup: ClientStartup,
        failures: FailedLogins,
        metrics: Metrics | None,
    ) -> None:
        self._host = host
        self._databases = databases
        self._security = security
        self._startup = startup
        self._authenticator = RoleProver(host, security, failures)
        self._lines = RefusalLines(host.clock)
        self._refused = None
        if metrics is not None:
            counter = metrics.counter(REFUSED_LOGINS, "Connections and logins of clients that this node refused, by reason.", ("reason",))
            self._refused = {reason: counter.labels(reason.value) for reason in RefusalReason}

    async def log_in(self, stream: MessageStream, attempt: Attempt, deadline_s: float) -> Login | None:
        """Begin a connection and authenticate its client.

        Args:
            attempt: receives what becomes known of the client, for `refuse`.
            deadline_s: monotonic time at which the caller aborts the connection.

        Returns:
            None if the client has disconnected, or only sent a cancel request.

        Raises:
            SqlError: it is refused. ProtocolError: it broke the protocol. OSError: the TLS handshake failed.
        """
        startup = await self._startup.run(stream, deadline_s)
        if startup is None:
            return None
        tls = stream.tls
        user = startup.parameters.get("user", "")
        name = startup.parameters.get("database") or user
        attempt.client = replace(attempt.client, database=name, role=user, tls=None if tls is None else tls.version())
        if not user:
            raise ClientRefused(RefusalReason.PROTOCOL, "28000", "no PostgreSQL user name was given in the first packet")
        settings = SessionSettings(user, startup.parameters, has_tls=self._security.tls is not TlsMode.OFF)
        database = self._databases.get(name)
        if database is None and self._databases.starting:
            raise SqlError("57P03", f'the node is starting and has not found database "{name}" yet', hint="Use another node, or try again.")
        if database is None and self._databases.is_partial:
            # Also for a database that does not exist, so that the answer does not show which do. Clients go on to the next node.
            hint = f"Use a node that has one: triplicate database show {name} names them."
            raise SqlError("57P03", f'this node has no copy of database "{name}"', hint=hint)
        role_limit, method = NO_LIMIT, "trust"
        if self._security.authentication is AuthenticationMode.SCRAM:
            proven = await self._authenticator.authenticate(stream, database, name, user)
            if proven is None:
                return None
            role_limit, method = proven.login.connection_limit, proven.mechanism
            attempt.client = replace(attempt.client, is_authenticated=True)
        if database is None:
            existing = ", ".join(self._databases.names()) or "none yet; create one with 'triplicate database create'"
            raise ClientRefused(RefusalReason.OTHER, "3D000", f'database "{name}" does not exist', hint=f"databases here: {existing}")
        return Login(attempt.client, database, settings, role_limit, method)

    def accept(self, login: Login) -> None:
        audit(AuditEvent.LOGIN_ACCEPTED.value, self._host.clock.wall_us(), login.client.facts(method=login.method))

    def refuse(self, attempt: Attempt, error: SqlError | ProtocolError | OSError) -> None:
        """Count and audit a login that `log_in` has refused, or that failed in another way."""
        sqlstate, logged = "", str(error)
        if isinstance(error, ClientRefused):
            reason, sqlstate, logged = error.reason, error.sqlstate, error.logged
        elif isinstance(error, SqlError):
            reason, sqlstate = RefusalReason.OTHER, error.sqlstate
        elif isinstance(error, ProtocolError):
            reason, sqlstate = RefusalReason.PROTOCOL, "08P01"
        elif isinstance(error, ssl.SSLError) or not isinstance(error, ConnectionError):
            reason = RefusalReason.TLS
        else:
            return  # The client has left.
        self.count(reason)
        self._lines.write(AuditEvent.LOGIN_REFUSED.value, attempt.client.facts(reason=reason.value, sqlstate=sqlstate, cause=logged))

    def count(self, reason: RefusalReason) -> None:
        """Count a refusal."""
        if self._refused is not None:
            self._refused[reason].inc()


def too_many_clients(limit: int) -> ClientRefused:
    return ClientRefused(
        RefusalReason.CONNECTIONS, "53300", f"too many clients: {limit} connections are open", hint="use a connection pool"
    )


def too_many_of_database(name: str, limit: int) -> ClientRefused:
    return ClientRefused(
        RefusalReason.CONNECTIONS, "53300", f'too many connections for database "{name}": {limit} are open', hint="use a connection pool"
    )


def too_many_of_role(name: str) -> ClientRefused:
    return ClientRefused(RefusalReason.CONNECTIONS, "53300", f'too many connections for role "{name}"')
