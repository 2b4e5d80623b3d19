"""The proof of a client's role: SCRAM-SHA-256, bound to the connection where it has TLS, and the role's right to log in.

A client learns only that a login has failed. The exchange for a role that does not exist, or has no password, runs in the same way with a
verifier of no password. A client that has proven a password learns more, for example that the role may not log in.
Source: PostgreSQL 15 documentation, "SASL Authentication"; its messages and SQLSTATEs.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from dataclasses import dataclass

from triplicate.errors import FormatError, ProtocolError
from triplicate.runtime import Host, sleep
from triplicate.security import SCRAM, SCRAM_PLUS, FailedLogins, ScramExchange, ScramVerifier, doubling_delay_s, mock_verifier
from triplicate.sql.core.interface import Database
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.pg.protocol.login_messages import (
    SASL_LETTER,
    SASL_MESSAGE_BYTES_MAX,
    authentication_sasl,
    authentication_sasl_continue,
    authentication_sasl_final,
    sasl_initial_response,
)
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.server_security import ClientRefused, RefusalReason, ServerSecurity

NONCE_BYTES = 18
"""PostgreSQL's size."""
DELAY_FIRST_S = 0.1
DELAY_LONGEST_S = 3.0
"""Bounds of the delay before the answer to a failed login, in seconds. It doubles with each failure of the address."""
_HEADER_BYTES = 64
"""Allowance for the parts of a message other than the exchange's own text."""


class SecretNumbers:
    """Unpredictable bytes. The stream of a `Host` is no generator for secrets: who sees enough of its numbers computes the next ones.

    Its numbers are therefore not shown, but hashed with a key that is not shown either.
    """

    def __init__(self, host: Host, purpose: str) -> None:
        self._stream = host.entropy.stream(purpose)
        self._key = self._stream.randbytes(32)

    def draw(self, size: int) -> bytes:
        """At most 32 bytes."""
        return hmac.digest(self._key, self._stream.randbytes(32), "sha256")[:size]


@dataclass(frozen=True, slots=True)
class ProvenRole:
    """A role that a client has proven to be."""

    login: RoleLogin
    mechanism: str


class RoleProver:
    """Authenticates the clients of one server."""

    def __init__(self, host: Host, security: ServerSecurity, failures: FailedLogins) -> None:
        self._host = host
        self._security = security
        self._failures = failures
        self._nonces = SecretNumbers(host, "postgres.nonce")

    async def authenticate(self, stream: MessageStream, database: Database | None, database_name: str, user: str) -> ProvenRole | None:
        """Let the client prove its role.

        Args:
            database: None if there is none of this name. The client does not learn it.
            user: the role's name in the first packet.

        Returns:
            None if the client has disconnected; clients without a password do.

        Raises:
            ClientRefused: the proof failed, or the role may not log in. ProtocolError: the client broke the protocol.
        """
        self._check_attempts(stream.address)
        context = None if stream.tls is None else stream.tls.context
        identity = self._security.identity
        end_point = None if context is None or identity is None else identity.end_point(context)
        mechanisms = (SCRAM,) if end_point is None else (SCRAM_PLUS, SCRAM)
        login = None if database is None else await database.role_login(user)
        verifier = self._verifier(login, database_name, user)
        with stream.limited(SASL_MESSAGE_BYTES_MAX + _HEADER_BYTES):
            first = await self._asked(stream, authentication_sasl(mechanisms))
            if first is None:
                return None
            mechanism, message = sasl_initial_response(first)
            if mechanism not in mechanisms:
                raise ProtocolError(f"the client selected a mechanism that was not offered; these are: {', '.join(mechanisms)}")
            nonce = b64encode(self._nonces.draw(NONCE_BYTES)).decode()
            exchange = ScramExchange(verifier, message, nonce, mechanism, end_point)
            final = await self._asked(stream, authentication_sasl_continue(exchange.challenge))
            if final is None:
                return None
            answer = exchange.final(final)
        self._check_attempts(stream.address)  # Others from there may have failed meanwhile: a right guess among them must not count.
        if answer is None or database is None or login is None or login.verifier is None:
            raise await self._failure(stream.address, login, user)
        now = await database.role_login(user)  # The role may have been dropped or altered since the client's first message.
        if now is None or now.verifier != login.verifier:
            raise await self._failure(stream.address, now, user)
        login = now
        self._check_rights(stream, login)
        stream.write(authentication_sasl_final(answer))
        return ProvenRole(login, mechanism)

    def _verifier(self, login: RoleLogin | None, database_name: str, user: str) -> ScramVerifier:
        mock = mock_verifier(self._security.secret, f"{database_name}\0{user}")
        if login is None or login.verifier is None:
            return mock
        try:
            return ScramVerifier.parse(login.verifier)
        except FormatError as error:
            self._host.trace("node.role_unusable", role=login.name, error=str(error))
            return mock

    @staticmethod
    async def _asked(stream: MessageStream, question: bytes) -> bytes | None:
        """Send a message, and return the body of the client's answer; None if it has disconnected."""
        stream.write(question)
        stream.flush_nowait()
        while (message := stream.next_message()) is None:
            if stream.is_lost:
                return None
            await stream.wait()
        letter, body = message
        if letter != SASL_LETTER:
            raise ProtocolError("expected a SASL response, and the client sent another message")
        return body

    def _check_attempts(self, address: str) -> None:
        """Raises ClientRefused: too many logins from the address have failed."""
        wait_s = self._failures.wait_s(address, self._host.clock.monotonic())
        if wait_s > 0:
            raise ClientRefused(
                RefusalReason.ATTEMPTS, "28000", "too many failed logins from this address", hint=f"Try again in {max(1, round(wait_s))} s."
            )

    async def _failure(self, address: str, login: RoleLogin | None, user: str) -> ClientRefused:
        """Count a failed login, and wait before its answer. Returns the error to raise, the same for each cause."""
        failures = self._failures.count(address, self._host.clock.monotonic())
        cause = "no such role in this database" if login is None else "no password is set" if login.verifier is None else "wrong password"
        await sleep(self._host.clock, doubling_delay_s(failures, DELAY_FIRST_S, DELAY_LONGEST_S))
        return ClientRefused(RefusalReason.PASSWORD, "28P01", f'password authentication failed for user "{user}"', logged=cause)

    def _check_rights(self, stream: MessageStream, login: RoleLogin) -> None:
        """Raises ClientRefused: the role is proven, but may not log in."""
        if login.valid_until_us is not None and self._host.clock.wall_us() >= login.valid_until_us:
            raise ClientRefused(
                RefusalReason.EXPIRED,
                "28000",
                f'the password of role "{login.name}" has expired',
                hint="An administrator may set another one, or another VALID UNTIL.",
            )
        if not login.can_login:
            raise ClientRefused(RefusalReason.RIGHTS, "28000", f'role "{login.name}" is not permitted to log in')
        if self._security.certificate_names_role and common_name(stream) != login.name:
            raise ClientRefused(
                RefusalReason.CERTIFICATE,
                "28000",
                f'certificate authentication failed for user "{login.name}"',
                hint="The common name of the client's certificate must be the name of the role.",
            )


def common_name(stream: MessageStream) -> str | None:
    """The common name of the client's certificate, which TLS has verified; None if it has shown none or has several names."""
    certificate = None if stream.tls is None else stream.tls.getpeercert()
    if not certificate:
        return None
    subject: tuple[tuple[tuple[str, str], ...], ...] = certificate.get("subject", ())  # type: ignore[assignment]
    names = [value for part in subject for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 else None
