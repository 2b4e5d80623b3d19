"""The server's side of a login by SASL: one exchange on one connection, token by token.

Two plugins of BookKeeper's authentication messages carry it. ``sasl`` is Apache's, with DIGEST-MD5. ``triplicate-sasl`` is ours: its first
token is the mechanism's name, a NUL byte and the mechanism's first message.

A user who does not exist is answered as one who does, after the same work. Secrets are compared in constant time.

Source: RFC 2831, RFC 4616, RFC 5802; JDK `DigestMD5Server`; BookKeeper `SaslServerState`, `SASLBookieAuthProvider`.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from triplicate.errors import ProtocolError
from triplicate.security.core import digest_md5
from triplicate.security.core.scram_exchange import SCRAM, SCRAM_PLUS, ScramExchange
from triplicate.security.core.scram_verifier import PASSWORD_BYTES_MAX
from triplicate.security.core.users import HASH_BYTES, USER_BYTES_MAX, User

APACHE_PLUGIN = "sasl"
OWN_PLUGIN = "triplicate-sasl"
PLAIN = "PLAIN"
DIGEST_MD5 = digest_md5.MECHANISM
MECHANISMS = (SCRAM_PLUS, SCRAM, DIGEST_MD5, PLAIN)

TOKEN_BYTES_MAX = 4096
"""The JDK's limit for a client's token."""
NONCE_BYTES = 18

_SCRAM_USER = re.compile(rb"(?:[ny]|p=[A-Za-z0-9.\-]+),[^,]*,n=([^,]*),")


class LoginRefusal(Enum):
    """Why a login was refused, for metrics and traces. The client does not learn it."""

    MALFORMED = "malformed token"
    MECHANISM = "mechanism not offered"
    UNPROVEN = "wrong user or password"


class Users(Protocol):
    """The users of a server."""

    def find(self, name: str) -> tuple[User, bool]:
        """(user, True), or (a user of whom nobody has the password, False) if there is none of this name, after the same work."""


@dataclass(frozen=True, slots=True)
class LoginChallenge:
    """The exchange continues: the token to send."""

    token: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoginProven:
    """The client has proven to be this user. `token`: the last one to send."""

    user: User
    token: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The login failed. `user`: whose, if it is a user of the server."""

    reason: LoginRefusal
    user: str = ""


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """A password to compare, which takes milliseconds: call `compare` on a worker and give its result to `verdict`."""

    user: User
    is_known: bool
    password: str = field(repr=False)

    def compare(self) -> bool:
        """Whether it is the user's password."""
        return self.user.scram.matches(self.password)

    def verdict(self, matches: bool) -> LoginProven | LoginRefused:
        """The outcome of the login."""
        return _outcome(self.user, self.is_known, matches, b"")


Step = LoginChallenge | LoginProven | LoginRefused | PasswordCheck


class SaslMechanism(Protocol):
    """One mechanism on one connection.

    Raises (by `step`):
        ProtocolError: the token is malformed, or against the rules of the mechanism. It repeats no secret.
    """

    name: str

    def step(self, token: bytes) -> Step:
        """Process the client's next token. After `LoginProven`, `LoginRefused` or `PasswordCheck` there is none."""


class SaslServer:
    """The login of one connection.

    Args:
        users: who may log in.
        offered: names of the mechanisms that this connection may use.
        secret: random bytes that nobody can predict (`Entropy.secret`).
        end_point: the channel binding; None without TLS.
    """

    def __init__(self, users: Users, offered: Collection[str], secret: Callable[[int], bytes], end_point: bytes | None) -> None:
        self._users = users
        self._offered = offered
        self._secret = secret
        self._end_point = end_point
        self._plugin = ""
        self._mechanism: SaslMechanism | None = None
        self._ended = False

    @property
    def mechanism(self) -> str:
        """The mechanism that the client has chosen; empty before its first token."""
        return self._mechanism.name if self._mechanism is not None else ""

    def accepts(self, plugin: str) -> bool:
        """Whether a token of this plugin may come next. Otherwise it has no effect on the login."""
        return plugin == self._plugin if self._plugin else plugin in (APACHE_PLUGIN, OWN_PLUGIN)

    def step(self, plugin: str, token: bytes) -> Step:
        """Process the client's next token. `plugin`: one that is accepted."""
        if self._ended or len(token) > TOKEN_BYTES_MAX:
            return self._end(LoginRefused(LoginRefusal.MALFORMED))
        self._plugin = plugin
        try:
            if self._mechanism is None:
                name, _, token = (DIGEST_MD5, b"", token) if plugin == APACHE_PLUGIN else _split(token)
                if name not in self._offered:
                    return self._end(LoginRefused(LoginRefusal.MECHANISM))
                self._mechanism = self._new_mechanism(name)
            return self._end(self._mechanism.step(token))
        except ProtocolError:
            return self._end(LoginRefused(LoginRefusal.MALFORMED))

    def _end(self, step: Step) -> Step:
        self._ended = not isinstance(step, LoginChallenge)
        return step

    def _new_mechanism(self, name: str) -> SaslMechanism:
        if name == DIGEST_MD5:
            return DigestMd5Server(self._users, self._secret(digest_md5.NONCE_BYTES))
        if name == PLAIN:
            return PlainServer(self._users)
        return ScramServer(self._users, name, self._secret(NONCE_BYTES), self._end_point if SCRAM_PLUS in self._offered else None)


class DigestMd5Server:
    """DIGEST-MD5, as Java's clients speak it. A first token of the client has no meaning: the server begins."""

    name = DIGEST_MD5

    def __init__(self, users: Users, nonce: bytes) -> None:
        self._users = users
        self._nonce = b64encode(nonce)
        self._challenged = False

    def step(self, token: bytes) -> Step:
        """See `SaslMechanism`."""
        if not self._challenged:
            self._challenged = True
            return LoginChallenge(
                digest_md5.format_directives(
                    [
                        ("realm", digest_md5.quoted(digest_md5.REALM.encode())),
                        ("nonce", digest_md5.quoted(self._nonce)),
                        ("charset", b"utf-8"),
                        ("algorithm", b"md5-sess"),
                    ]
                )
            )
        found = digest_md5.parse_directives(token)
        name = self._checked_name(found)
        user, is_known = self._users.find(name)
        # A user without a hash is refused after the same work.
        password_hash = user.password_hash if user.password_hash is not None else bytes(HASH_BYTES)
        facts = (password_hash, self._nonce, found["cnonce"], found.get("authzid"), found["digest-uri"])
        matches = hmac.compare_digest(_proof(*facts), found["response"])
        return _outcome(user, is_known and user.password_hash is not None, matches, b"rspauth=" + _proof(*facts, by_server=True))

    def _checked_name(self, found: dict[str, bytes]) -> str:
        """The name of the user, in a response that is otherwise as it must be."""
        missing = {"username", "realm", "nonce", "cnonce", "digest-uri", "response"} - found.keys()
        if missing:
            raise ProtocolError(f"a response of DIGEST-MD5 lacks {', '.join(sorted(missing))}")
        is_right = (
            found["realm"] == digest_md5.REALM.encode()
            and hmac.compare_digest(found["nonce"], self._nonce)
            and found["digest-uri"].lower() == digest_md5.DIGEST_URI
            and found.get("charset", b"utf-8") == b"utf-8"
            and found.get("nc", digest_md5.NONCE_COUNT) == digest_md5.NONCE_COUNT
            and found.get("qop", b"auth") == b"auth"
            and found.get("authzid", found["username"]) == found["username"]
        )
        if not is_right:
            raise ProtocolError("a response of DIGEST-MD5 is to another challenge, or for another user, realm, service or protection")
        return _text(found["username"])


class ScramServer:
    """SCRAM-SHA-256, with `end_point` also SCRAM-SHA-256-PLUS."""

    def __init__(self, users: Users, name: str, nonce: bytes, end_point: bytes | None) -> None:
        self.name = name
        self._users = users
        self._nonce = b64encode(nonce).decode()
        self._end_point = end_point
        self._exchange: tuple[ScramExchange, User, bool] | None = None
        """The exchange, whose it is, and whether there is such a user; None before the first token."""

    def step(self, token: bytes) -> Step:
        """See `SaslMechanism`."""
        if self._exchange is None:
            user, is_known = self._users.find(_scram_user(token))
            exchange = ScramExchange(user.scram, token, self._nonce, self.name, self._end_point)
            self._exchange = exchange, user, is_known
            return LoginChallenge(exchange.challenge.encode())
        exchange, user, is_known = self._exchange
        proof = exchange.final(token)
        return _outcome(user, is_known, proof is not None, (proof or "").encode())


class PlainServer:
    """PLAIN: the password itself. Only for connections with TLS."""

    name = PLAIN

    def __init__(self, users: Users) -> None:
        self._users = users

    def step(self, token: bytes) -> Step:
        """See `SaslMechanism`."""
        parts = token.split(b"\0")
        if len(parts) != 3 or parts[0] not in (b"", parts[1]) or not parts[2] or len(parts[2]) > PASSWORD_BYTES_MAX:
            raise ProtocolError("a token of PLAIN has a user and a password, and no other identity")
        password = _text(parts[2])
        return PasswordCheck(*self._users.find(_text(parts[1])), password)


def _outcome(user: User, is_known: bool, matches: bool, token: bytes) -> LoginProven | LoginRefused:
    if matches and is_known:
        return LoginProven(user, token)
    return LoginRefused(LoginRefusal.UNPROVEN, user.name if is_known else "")


def _proof(
    password_hash: bytes, nonce: bytes, client_nonce: bytes, authorization_id: bytes | None, uri: bytes, *, by_server: bool = False
) -> bytes:
    return digest_md5.proof(
        password_hash, nonce=nonce, client_nonce=client_nonce, authorization_id=authorization_id, by_server=by_server, uri=uri
    )


def _split(token: bytes) -> tuple[str, bytes, bytes]:
    """The mechanism and the message of our plugin's first token."""
    name, separator, message = token.partition(b"\0")
    if not separator or not name.isascii():
        raise ProtocolError("the first token names no mechanism")
    return name.decode(), separator, message


def _scram_user(token: bytes) -> str:
    """The user in the client's first message of SCRAM."""
    found = _SCRAM_USER.match(token)
    if found is None:
        raise ProtocolError("malformed SCRAM message: it has no user")
    name = found[1].replace(b"=2C", b",").replace(b"=3D", b"\0")
    if b"=" in name:
        raise ProtocolError("malformed SCRAM message: a user's name has an = that stands for nothing")
    return _text(name.replace(b"\0", b"="))


def _text(value: bytes) -> str:
    if len(value) > max(USER_BYTES_MAX, PASSWORD_BYTES_MAX):
        raise ProtocolError("a name or password is too long")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a name or password is not UTF-8") from None
