"""The doorkeeper of one connection: TLS and login. Until it admits the connection, no request of it reaches anything else.

The answers are BookKeeper's (`AuthHandler`, `BookieRequestProcessor`), but for failed logins, which it leaves unanswered: version 3 gets
"unauthorized" and its header back, version 2 the operation's own answer, or the end of the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from triplicate.bookie.server.dialects import NUMBERED_OPERATIONS, NUMBERED_VERSIONS
from triplicate.bookie.server.door import ANYBODY, Door, Principal
from triplicate.errors import FrameTooLarge, ProtocolError
from triplicate.runtime import Timer, resolve, sleep_until
from triplicate.security import (
    APACHE_PLUGIN,
    LoginChallenge,
    LoginProven,
    LoginRefusal,
    LoginRefused,
    PasswordCheck,
    PeerCertificate,
    Rights,
    SaslServer,
    roles_of_units,
)
from triplicate.wire import (
    LENGTH_BYTES,
    OVERSIZED_HEAD_BYTES,
    AddRequest,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    ReadRequest,
    Request,
    StartTlsResponse,
    Status,
    Unserved,
    V3Request,
    decode_request,
    encode_frame,
    encode_response,
    is_v3,
    next_frame,
    oversized_v2_add,
    oversized_v3_add,
    v2,
    v3,
)

if TYPE_CHECKING:
    import ssl

BYTES_MAX = 16 * 1024
"""Bytes that a connection may send in clear or inside TLS before it is admitted. Tokens have at most 4096."""
GREETING_WAIT_S = 2.0
"""Time for START_TLS after a greeting, in seconds. A virtual machine of Java that has just started may load its TLS classes in between."""
GREETING_GAP_S = 0.05
"""Time for a greeting behind START_TLS, in seconds: Java's client sends the two in one turn, and they may arrive one by one."""
START_TLS_BYTES_MAX = 1024
"""A larger first frame is no START_TLS."""


class DoorGuest(Protocol):
    """The connection, as its doorkeeper sees it."""

    peer: str
    """Its address, for messages."""

    @property
    def address(self) -> str: ...

    @property
    def holds(self) -> Mapping[str, None]:
        """Reasons why no further frame is handled now."""

    @property
    def certificate(self) -> PeerCertificate | None:
        """The certificate of its TLS handshake."""

    def answer(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def admit(self, principal: Principal, is_older: bool, rest: bytes) -> None:
        """It may send requests from now on. `rest`: bytes that it has sent already. `is_older`: it speaks version 2."""

    def while_held(self, reason: str, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Run `work` in a task; meanwhile no frame is handled."""

    async def secure(self, context: ssl.SSLContext, limit_s: float) -> None:
        """Protect the connection by TLS. Raises OSError: the handshake failed, and the connection is gone."""


class _Reply(NamedTuple):
    """How one request is answered."""

    token: Callable[[bytes], bytes]
    """The frame with a token."""
    refusal: bytes
    """The frame that refuses it; empty if there is none, and the connection ends."""


class Doorkeeper:
    """See the module's text."""

    def __init__(self, guest: DoorGuest, door: Door) -> None:
        self._guest = guest
        self._door = door
        self._buffer = b""
        self._received = 0
        self._is_older = False
        self._has_tls = False
        self._ended = False
        """Whether the connection is admitted or refused for good."""
        self._end_point: bytes | None = None
        self._sasl: SaslServer | None = None
        self._greeting = b""
        """A frame that is handled after the TLS handshake, see `_is_greeting`."""
        self._tls_txn_id: int | None = None
        """The number of a START_TLS behind which a greeting may still come in clear; None for none."""
        self._counted: dict[str, None] = {}
        """Reasons of refusals that were counted and traced."""
        self._turn: asyncio.Future[None] | None = None
        """Resolved when its turn among the handshakes has come, or the connection is gone; None if it waits for none."""
        self._timers: list[Timer] = []
        self._deadline = door.host.clock.monotonic() + door.timeout_s

    def begin(self) -> None:
        """The connection is open."""
        if not self._door.policy.is_guarded:
            return
        self._call_at(self._deadline, self.refuse, "too slow")
        oldest = self._door.half_open.add(self, self._guest.address)
        if oldest is not None:
            oldest.refuse("too many connections that are not admitted")

    def end(self) -> None:
        """The connection is admitted, or gone. Idempotent."""
        self._ended = True
        self._door.half_open.remove(self)
        if self._turn is not None:
            # Otherwise connections that are gone would keep others waiting, and cost memory until their turn.
            self._door.handshakes.give_back()
            resolve(self._turn, None)
            self._turn = None
        while self._timers:
            self._timers.pop().cancel()

    def _call_at(self, when: float, function: Callable[..., None], *args: object) -> None:
        """Call the function unless the connection is admitted or gone then."""
        self._timers.append(self._door.host.clock.call_at(when, function, *args))

    def process(self, data: bytes) -> None:
        """Handle whole frames, up to one behind which the connection is held or admitted; keep the rest."""
        if self._ended:
            return
        self._buffer += data
        self._received += len(data)
        if self._guest.holds:
            # Bytes that came with the end of a TLS handshake arrive although the connection is not read, see `Network.start_tls`.
            return
        if self._tls_txn_id is not None:
            self._await_greeting()
            return
        if not self._door.policy.is_guarded and not self._may_be_start_tls():
            self._admit(ANYBODY)
            return
        try:
            self._handle_frames()
        except (ProtocolError, FrameTooLarge) as error:
            self._door.host.trace("bookie.protocol_error", peer=self._guest.peer, error=str(error))
            self.end()
            self._guest.close()

    def _may_be_start_tls(self) -> bool:
        """Whether the first frame may turn out to be one, where the client may also do without."""
        size = int.from_bytes(self._buffer[:LENGTH_BYTES], "big") if len(self._buffer) >= LENGTH_BYTES else 0
        body = self._buffer[LENGTH_BYTES : LENGTH_BYTES + size]
        if size > START_TLS_BYTES_MAX or (body and not is_v3(body)):
            return False
        return len(body) < size or not size or _is_start_tls(body)

    def _handle_frames(self) -> None:
        while not self._ended and not self._guest.holds:
            try:
                frame = next_frame(self._buffer, 0, len(self._buffer), BYTES_MAX)
            except FrameTooLarge:
                if len(self._buffer) >= OVERSIZED_HEAD_BYTES:
                    self._refuse_large()
                return
            if self._received > BYTES_MAX:
                self.refuse("too many bytes")
                return
            if frame is None:
                return
            body, self._buffer = self._buffer[frame[0] : frame[1]], self._buffer[frame[1] :]
            self._handle(body)

    def _refuse_large(self) -> None:
        """A large frame: an add gets its answer, so that an honest client without a login learns the reason."""
        head = self._buffer[:OVERSIZED_HEAD_BYTES]
        add = oversized_v3_add(head) or oversized_v2_add(head)
        if add is not None:
            self._guest.answer(add.refusal)
        self.refuse("too many bytes", is_answered=add is not None)

    def _handle(self, body: bytes) -> None:
        if not self._is_older:
            try:
                envelope = _decode_v3(body)
            except ProtocolError:
                pass  # A frame of version 2, which is decoded below.
            else:
                self._handle_v3(envelope, body)
                return
        self._handle_v2(body)

    def _handle_v3(self, envelope: V3Request, body: bytes) -> None:
        request = envelope.request
        if envelope.operation == v3.OperationType.START_TLS:
            self._start_tls(envelope.txn_id)
            return
        plugin = request.plugin if isinstance(request, AuthRequest) else ""
        reply = _Reply(
            lambda token: v3.encode_response(AuthResponse(Status.OK, plugin, token), envelope.txn_id),
            v3.encode_unauthenticated(envelope),
        )
        self._handle_request(request, body, reply)

    def _handle_v2(self, body: bytes) -> None:
        version, _, _ = v2.split_header(body)
        request: Request | None = None
        refusal = b""
        try:
            request = decode_request(body)
        except Unserved as error:
            if error.answer is None:
                # As the dialect: the version of a token is not checked.
                request = decode_request(bytes([v2.CURRENT_VERSION]) + body[1:])
            else:
                refusal = encode_response(error.answer, error.version)
        if isinstance(request, AddRequest | ReadRequest | BatchReadRequest):
            refusal = encode_response(v3.refusal_of(request, Status.UNAUTHORIZED), version)
        plugin = request.plugin if isinstance(request, AuthRequest) else ""
        reply = _Reply(lambda token: encode_response(AuthResponse(Status.OK, plugin, token)), refusal)
        # A greeting does not decide the version: Java's client sends START_TLS in version 3 behind one of version 2.
        self._is_older = not (isinstance(request, AuthRequest) and self._is_greeting(request))
        self._handle_request(request, body, reply)

    def _handle_request(self, request: Request | None, body: bytes, reply: _Reply) -> None:
        policy = self._door.policy
        if isinstance(request, AuthRequest):
            if self._is_greeting(request):
                self._greeting = encode_frame(body)
                self._call_at(self._door.host.clock.monotonic() + GREETING_WAIT_S, self._miss_tls, reply)
                return
            if (self._has_tls or not policy.requires_tls) and policy.by_sasl:
                self._token(request, reply)
                return
        if policy.requires_tls and not self._has_tls:
            self._refuse_plain(reply)
            return
        self._turn_away("request before the login" if not isinstance(request, AuthRequest) else "other plugin", reply)

    def _refuse_plain(self, reply: _Reply) -> None:
        self._guest.answer(reply.refusal)
        self.refuse("no TLS", is_answered=True)

    def _miss_tls(self, reply: _Reply) -> None:
        """A greeting was not followed by START_TLS: this client does without, and would wait for the answer to its token for long."""
        if not self._has_tls and not self._guest.holds:
            self._refuse_plain(reply)

    def _turn_away(self, reason: str, reply: _Reply) -> None:
        """Refuse one request. Over version 3 the connection stays open, as with BookKeeper; so it does over version 2 after an answer."""
        self._count(reason)
        if reply.refusal:
            self._guest.answer(reply.refusal)
        else:
            self.end()
            self._guest.close()

    # TLS.

    def _is_greeting(self, request: AuthRequest) -> bool:
        """Whether a token is the empty one with which Java's client begins, and TLS comes before it is handled.

        With TLS and SASL, Java's client sends its empty first token at the same time as START_TLS, in clear, and either may come first.
        The token holds nothing, and the answer to it goes through TLS. So it is the one exception to the rule that nothing may be sent in
        clear behind START_TLS.
        """
        policy = self._door.policy
        if request.plugin != APACHE_PLUGIN or request.payload or self._greeting or self._has_tls or not policy.offers_tls:
            return False
        return policy.requires_tls or self._next_is_start_tls()

    def _next_is_start_tls(self) -> bool:
        frame = next_frame(self._buffer, 0, len(self._buffer), BYTES_MAX)
        return frame is not None and _is_start_tls(self._buffer[frame[0] : frame[1]])

    def _start_tls(self, txn_id: int) -> None:
        identity = self._door.identity
        if identity is None or self._has_tls or self._sasl is not None:
            # There is no TLS, there is TLS already, or a login is under way whose tokens were in clear.
            self._guest.answer(v3.encode_response(StartTlsResponse(Status.BAD_REQUEST), txn_id))
            return
        if self._buffer and not self._rest_is_greeting():
            self.refuse("plain text behind START_TLS")
            return
        self._tls_txn_id = txn_id
        if self._greeting or not self._door.policy.by_sasl:
            self._begin_tls()
        else:
            self._call_at(self._door.host.clock.monotonic() + GREETING_GAP_S, self._begin_tls)

    def _await_greeting(self) -> None:
        """Bytes came behind START_TLS, before its answer: they are a greeting, or the beginning of one."""
        if self._rest_is_greeting():
            self._begin_tls()
        elif len(self._buffer) > START_TLS_BYTES_MAX or next_frame(self._buffer, 0, len(self._buffer), BYTES_MAX) is not None:
            self.refuse("plain text behind START_TLS")

    def _begin_tls(self) -> None:
        txn_id, self._tls_txn_id = self._tls_txn_id, None
        if txn_id is None:
            return  # The greeting came first.
        if self._buffer:
            self.refuse("plain text behind START_TLS")
            return
        self._guest.while_held("TLS handshake", lambda: self._secure(txn_id), "TLS handshake")

    def _rest_is_greeting(self) -> bool:
        """Whether one greeting and nothing else came behind START_TLS; it is kept."""
        frame = next_frame(self._buffer, 0, len(self._buffer), BYTES_MAX)
        if frame is None or frame[1] != len(self._buffer) or self._greeting:
            return False
        body = self._buffer[frame[0] : frame[1]]
        try:
            request = _decode_v3(body).request if is_v3(body) else decode_request(body)
        except ProtocolError:
            return False
        if not isinstance(request, AuthRequest) or request.plugin != APACHE_PLUGIN or request.payload:
            return False
        self._greeting, self._buffer = self._buffer, b""
        return True

    async def _secure(self, txn_id: int) -> None:
        door, clock = self._door, self._door.host.clock
        identity = door.identity
        assert identity is not None, "START_TLS is accepted with an identity only"
        now = clock.monotonic()
        self._deadline = max(self._deadline, now) if door.policy.is_guarded else now + door.timeout_s
        wait_s = door.handshakes.wait_s(now)
        if now + wait_s >= self._deadline:
            door.handshakes.give_back()
            self.refuse("too many handshakes")
            return
        if wait_s:
            turn = self._turn = asyncio.get_running_loop().create_future()
            self._call_at(now + wait_s, resolve, turn, None)
            await turn
            if self._ended:
                return
            self._turn = None
        context = identity.server_context(door.policy.certificates)
        self._guest.answer(v3.encode_response(StartTlsResponse(Status.OK), txn_id))
        try:
            await self._guest.secure(context, max(self._deadline - clock.monotonic(), 0.001))
        except OSError as error:
            door.metrics.handshakes.labels("failed").inc()
            self._count("TLS handshake failed", error=str(error) or type(error).__name__)
            return
        door.metrics.handshakes.labels("done").inc()
        self._has_tls = True
        self._end_point = identity.end_point(context)
        # Only a greeting may have come in clear.
        self._buffer, self._greeting = self._greeting + self._buffer, b""
        self._admit_by_certificate(txn_id)

    def _admit_by_certificate(self, txn_id: int) -> None:
        """After the handshake: admit the connection where TLS or its certificate suffices."""
        policy, certificate = self._door.policy, self._guest.certificate
        if not policy.authenticates:
            self._admit(ANYBODY)
            return
        if not policy.by_certificate:
            return
        roles = roles_of_units(certificate.units, policy.authorized_roles) if certificate is not None else ()
        if roles and certificate is not None:
            self._door.metrics.logins.labels("certificate").inc()
            self._admit(Principal(certificate.common_name, Rights.of(roles)))
        elif not policy.by_sasl:
            self._count("certificate without a role" if certificate is not None else "no certificate")
            self._guest.answer(v3.encode_response(StartTlsResponse(Status.IO_ERROR), txn_id))

    # Login.

    def _token(self, request: AuthRequest, reply: _Reply) -> None:
        door = self._door
        assert door.users is not None, "a login by a password comes with users"
        if self._sasl is None:
            offered = door.policy.offered(has_tls=self._has_tls)
            self._sasl = SaslServer(door.users, offered, door.host.entropy.secret, self._end_point)
        if not self._sasl.accepts(request.plugin):
            self._turn_away("other plugin", reply)
            return
        step = self._sasl.step(request.plugin, request.payload)
        if isinstance(step, LoginChallenge):
            self._guest.answer(reply.token(step.token))
            return
        delay_s = door.login_delay_s(self._guest.address)
        if isinstance(step, PasswordCheck) and not door.has_room_for_check:
            self._guest.answer(reply.refusal)
            self.refuse("too many logins", is_answered=True)
        elif delay_s or isinstance(step, PasswordCheck):
            self._guest.while_held("login is checked", lambda: self._conclude_later(step, reply, delay_s), "login")
        else:
            self._conclude(step, reply)

    async def _conclude_later(self, step: LoginProven | LoginRefused | PasswordCheck, reply: _Reply, delay_s: float) -> None:
        door = self._door
        until = door.host.clock.monotonic() + delay_s
        if isinstance(step, PasswordCheck):
            step = step.verdict(await door.compare(step))
        if delay_s:
            await sleep_until(door.host.clock, until)
        self._conclude(step, reply)

    def _conclude(self, step: LoginProven | LoginRefused, reply: _Reply) -> None:
        if self._ended:
            return
        door, mechanism = self._door, self._sasl.mechanism if self._sasl is not None else ""
        if isinstance(step, LoginProven):
            # The user was read with the first token, and may have been removed, or got other rights or another password since.
            user = door.user_of_now(step.user)
            if user is None:
                self._guest.answer(reply.refusal)
                self.refuse("user changed during the login", is_answered=True, mechanism=mechanism, user=step.user.name)
                return
            door.metrics.logins.labels(mechanism).inc()
            door.host.trace("bookie.login", peer=self._guest.peer, user=step.user.name, mechanism=mechanism, tls=self._has_tls)
            self._guest.answer(reply.token(step.token))
            self._admit(Principal(user.name, Rights.of(user.roles), is_user=True))
            return
        if step.reason is LoginRefusal.UNPROVEN:
            door.failed_logins.count(self._guest.address, door.host.clock.monotonic())
        self._guest.answer(reply.refusal)
        self.refuse(step.reason.value, is_answered=True, mechanism=mechanism, user=step.user)

    def _admit(self, principal: Principal) -> None:
        self.end()
        rest, self._buffer = self._buffer, b""
        self._guest.admit(principal, self._is_older, rest)

    # Refusals.

    def refuse(self, reason: str, *, is_answered: bool = False, **facts: object) -> None:
        """End the connection. With an answer before, it is closed after that was sent; otherwise it is aborted."""
        if self._ended:
            return
        self._count(reason, **facts)
        self.end()
        if is_answered:
            self._guest.close()
        else:
            self._guest.abort()

    def _count(self, reason: str, **facts: object) -> None:
        """Count and trace a refusal, once per connection and reason."""
        if reason not in self._counted:
            self._counted[reason] = None
            self._door.refuse(reason, self._guest.peer, **facts)


def _decode_v3(body: bytes) -> V3Request:
    """Raises ProtocolError: it is no request of version 3, by BookKeeper's rules."""
    envelope = v3.decode_request(body)
    if envelope.version not in NUMBERED_VERSIONS or envelope.operation not in NUMBERED_OPERATIONS:
        raise ProtocolError(f"version {envelope.version}, operation {envelope.operation}: a number that is none of the protocol's")
    return envelope


def _is_start_tls(body: bytes) -> bool:
    if not is_v3(body):
        return False
    try:
        return _decode_v3(body).operation == v3.OperationType.START_TLS
    except ProtocolError:
        return False
