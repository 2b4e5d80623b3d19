"""Fuzz targets over what strangers send to a bookie before their login: tokens, streams of frames; and over the file of users."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast

from tests.fuzz.fields import Fields
from triplicate.bookie.server.door import Door
from triplicate.bookie.server.door_metrics import DoorMetrics
from triplicate.bookie.server.door_policy import DoorPolicy
from triplicate.bookie.server.doorkeeper import BYTES_MAX, Doorkeeper
from triplicate.config import BookieSettings, SecuritySettings
from triplicate.errors import FormatError, ProtocolError
from triplicate.runtime import Host
from triplicate.security import (
    MECHANISMS,
    BookieRole,
    LoginChallenge,
    LoginProven,
    LoginRefused,
    PasswordCheck,
    SaslServer,
    User,
    UsersFile,
    digest_md5,
    new_user,
)
from triplicate.security.core.users import format_users, parse_users
from triplicate.wire import AuthRequest, StartTlsRequest, encode_request, v3

PLUGINS = ("sasl", "triplicate-sasl")
TOKENS = (
    b"",
    b"SCRAM-SHA-256\0n,,n=writer,r=fuzz",
    b"SCRAM-SHA-256-PLUS\0p=tls-server-end-point,,n=writer,r=fuzz",
    b"PLAIN\0\0writer\0password",
    (
        b'charset=utf-8,username="writer",realm="bookkeeper",nonce="AAAA",nc=00000001,cnonce="a",digest-uri="bookkeeper/bookkeeper",'
        b'maxbuf=65536,response=00000000000000000000000000000000,qop=auth,authzid="writer"'
    ),
    b"c=biws,r=fuzz,p=AAAA",
)
RIGHT = "no fuzzer guesses this password"


@cache
def _writer() -> User:
    return new_user("writer", RIGHT, (BookieRole.WRITE,), bytes(16))


class OneUser:
    generation = 0

    def find(self, name: str) -> tuple[User, bool]:
        return _writer(), name == "writer"


def directives(data: bytes) -> None:
    """A token is refused, or has the same values after it was written again."""
    try:
        found = digest_md5.parse_directives(data)
    except ProtocolError:
        return
    again = digest_md5.format_directives([(name, digest_md5.quoted(value)) for name, value in found.items()])
    assert digest_md5.parse_directives(again) == found


def tokens(data: bytes) -> None:
    """No tokens log in, none raise, and none are accepted after a refusal."""
    fields = Fields(data)
    server = SaslServer(OneUser(), MECHANISMS, bytes, b"end point" if fields.flag() else None)
    ended = False
    while fields:
        plugin = PLUGINS[fields.byte() & 1]
        kind = fields.byte()
        token = TOKENS[kind % len(TOKENS)] if kind < 64 else fields.blob()
        if not server.accepts(plugin):
            continue
        step = server.step(plugin, token)
        assert isinstance(step, LoginChallenge | LoginRefused | PasswordCheck)
        assert not ended or isinstance(step, LoginRefused)
        ended = ended or not isinstance(step, LoginChallenge)
        if isinstance(step, PasswordCheck):
            assert not isinstance(step.verdict(step.password == RIGHT), LoginProven)


def users(data: bytes) -> None:
    """A file of users is refused, or has the same users after it was written again."""
    try:
        found = parse_users(data.decode(errors="replace"))
    except FormatError:
        return
    assert parse_users(format_users(found)) == found


class Stranger:
    """A connection that never proves anything."""

    def __init__(self) -> None:
        self.peer, self.address, self.certificate = "stranger:1", "stranger", None
        self.holds: dict[str, None] = {}
        self.closed = False

    def answer(self, data: bytes) -> None:
        assert not self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def admit(self, principal: object, is_older: bool, rest: bytes) -> None:
        raise AssertionError(f"a stranger was admitted as {principal}")

    def while_held(self, reason: str, work: Callable[[], Any], name: str) -> None:
        self.holds[reason] = None

    async def secure(self, context: object, limit_s: float) -> None:
        raise AssertionError("the hold is not worked on")


class Surroundings:
    """Clock, entropy and trace in one."""

    def monotonic(self) -> float:
        return 0.0

    def call_at(self, when: float, callback: Callable[..., None], *args: object) -> Surroundings:
        return self

    def cancel(self) -> None: ...

    def secret(self, size: int) -> bytes:
        return random.Random(size).randbytes(size)


def door(data: bytes) -> None:
    """No stream of frames is admitted, and what is kept of it is bounded."""
    fields = Fields(data)
    kind = fields.byte()
    here: Any = Surroundings()
    host = cast("Host", type("Host", (), {"clock": here, "entropy": here, "trace": staticmethod(lambda kind, /, **facts: None)})())
    settings = BookieSettings(tls=("off", "offered", "required")[kind % 3], authentication="sasl", users_file="users")
    policy = DoorPolicy.of(settings, SecuritySettings(ca_file="ca", certificate_file="certificate", key_file="key"))
    identity: Any = here if policy.offers_tls else None
    guest = Stranger()
    keeper = Doorkeeper(guest, Door(host, settings, policy, DoorMetrics(None), identity, cast("UsersFile", OneUser()), None))
    keeper.begin()
    chunk = 1 + fields.byte()
    stream = _stream(fields)
    for start in range(0, len(stream), chunk):
        if guest.closed or guest.holds:
            break
        keeper.process(stream[start : start + chunk])
        assert len(keeper._buffer) <= BYTES_MAX + chunk
    keeper.end()


def _stream(fields: Fields) -> bytes:
    parts: list[bytes] = []
    while fields:
        kind = fields.byte()
        if kind < 32:
            parts.append(v3.encode_request(StartTlsRequest(), kind))
        elif kind < 128:
            request = AuthRequest(PLUGINS[kind & 1], TOKENS[kind % len(TOKENS)] if kind & 2 else fields.blob())
            parts.append(v3.encode_request(request, kind) if kind & 4 else encode_request(request))
        elif kind < 160:
            parts.append(encode_request(AuthRequest("another", fields.blob())))
        else:
            parts.append(fields.blob())
    return b"".join(parts)


def seeds_of_directives() -> Iterator[bytes]:
    yield TOKENS[4]
    yield b'realm="bookkeeper",nonce="a\\"b",charset=utf-8,algorithm=md5-sess'


def seeds_of_tokens() -> Iterator[bytes]:
    for number in range(len(TOKENS)):
        yield bytes([number & 1, 1, number, 1, 5])
        yield bytes([1, 0, 0, 0, number])


def seeds_of_users() -> Iterator[bytes]:
    yield format_users({"writer": _writer(), 'a "quote"': new_user('a "quote"', "x", (), bytes(16), digest_md5=False)}).encode()


def seeds_of_door() -> Iterator[bytes]:
    for tls in range(3):
        for kinds in ((5,), (38, 5), (5, 38), (34, 38), (35, 39), (130, 3, 1, 2, 3), (200, 4, 0, 0, 0, 9)):
            yield bytes([tls, 255, *kinds])
            yield bytes([tls, 0, *kinds])
