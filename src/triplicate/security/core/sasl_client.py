"""The client's side of SASL: one login on one connection, without input and output.

Two plugins of BookKeeper's authentication messages carry it. ``sasl`` is Apache's, with DIGEST-MD5. ``triplicate-sasl`` is ours: its first
token is the mechanism's name, a NUL byte and the mechanism's first message.

Every mechanism but PLAIN proves the server as well: a login is complete only when the server has shown that it knows the password or its
verifier.

Source: RFC 2831, RFC 4616, RFC 5802, RFC 5929; BookKeeper `SaslClientState`.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from triplicate.errors import ConfigError, ProtocolError, Unauthorized
from triplicate.security.core import digest_md5
from triplicate.security.core.sasl_server import APACHE_PLUGIN, OWN_PLUGIN, PLAIN
from triplicate.security.core.scram_exchange import BINDING, SCRAM, SCRAM_PLUS

if TYPE_CHECKING:
    from scramp import ScramClient

CLIENT_NONCE_BYTES = 24
ITERATIONS_MAX = 200_000
"""The client computes no more iterations of PBKDF2, which take about a tenth of a second on the loop."""
SERVER_TOKEN_BYTES_MAX = 4096


class SaslClient(Protocol):
    """One login. Its methods are those of an authenticator of the client room.

    Raises (all methods):
        Unauthorized: the server refused, or did not prove itself. ProtocolError: its token has no meaning here.
    """

    plugin: str

    def first_token(self) -> bytes:
        """The token to send first; may be empty."""

    def answer(self, token: bytes) -> bytes | None:
        """The token to send in reply; None when the login is complete."""


class DigestMd5Client:
    """DIGEST-MD5, as Apache's bookies check it.

    Args:
        client_nonce: unpredictable, new for each login. It makes a recorded answer of a server worthless.
    """

    plugin = APACHE_PLUGIN

    def __init__(self, user: str, password: str, client_nonce: bytes) -> None:
        self._user = user
        self._password = password
        self._client_nonce = b64encode(client_nonce)
        self._expected: bytes | None = None
        """The server's proof; None before its challenge."""

    def first_token(self) -> bytes:
        """See `SaslClient`. Empty: the server speaks first."""
        return b""

    def answer(self, token: bytes) -> bytes | None:
        """See `SaslClient`. A challenge is answered once; then only the server's proof is accepted."""
        if len(token) > SERVER_TOKEN_BYTES_MAX:
            raise ProtocolError(f"a token of DIGEST-MD5 has {len(token)} bytes")
        directives = digest_md5.parse_directives(token)
        if self._expected is None:
            return self._respond(directives)
        if not hmac.compare_digest(directives.get("rspauth", b""), self._expected):
            raise Unauthorized("the bookie did not prove that it knows the password of client.user: it may be another server in its place")
        return None

    def _respond(self, challenge: dict[str, bytes]) -> bytes:
        nonce = challenge.get("nonce", b"")
        if not nonce or challenge.get("algorithm") != b"md5-sess":
            raise ProtocolError("a challenge of DIGEST-MD5 has no nonce, or another algorithm than md5-sess")
        if b"auth" not in challenge.get("qop", b"auth").replace(b" ", b"").split(b","):
            raise ProtocolError("the bookie's DIGEST-MD5 wants a protection of its own for the connection; use TLS in its place")
        realm = challenge.get("realm", digest_md5.REALM.encode())
        charset = challenge.get("charset")
        if charset not in (None, b"utf-8"):
            raise ProtocolError("a challenge of DIGEST-MD5 has another character set than UTF-8")
        try:
            user = self._user.encode("utf-8" if charset else "latin-1")
            password_hash = digest_md5.hash_of(self._user, self._password, realm.decode("utf-8" if charset else "latin-1"))
        except UnicodeError:
            raise ConfigError("the bookie's DIGEST-MD5 knows only ISO 8859-1, and client.user has other characters") from None
        prove = partial(digest_md5.proof, password_hash, nonce=nonce, client_nonce=self._client_nonce, authorization_id=user)
        self._expected = prove(by_server=True)
        directives = [
            *([("charset", charset)] if charset else []),
            ("username", digest_md5.quoted(user)),
            ("realm", digest_md5.quoted(realm)),
            ("nonce", digest_md5.quoted(nonce)),
            ("nc", digest_md5.NONCE_COUNT),
            ("cnonce", digest_md5.quoted(self._client_nonce)),
            ("digest-uri", digest_md5.quoted(digest_md5.DIGEST_URI)),
            ("maxbuf", b"65536"),
            ("response", prove()),
            ("qop", b"auth"),
            ("authzid", digest_md5.quoted(user)),
        ]
        return digest_md5.format_directives(directives)


class ScramSha256Client:
    """SCRAM-SHA-256, with `binding` SCRAM-SHA-256-PLUS, over our plugin.

    Args:
        client_nonce: unpredictable, new for each login.
        binding: the hash of the server's certificate (tls-server-end-point). The login then succeeds only at the server that TLS has
            proven.
    """

    plugin = OWN_PLUGIN

    def __init__(self, user: str, password: str, client_nonce: bytes, binding: bytes | None = None) -> None:
        self._mechanism = SCRAM if binding is None else SCRAM_PLUS
        self._scram = _scram_client(self._mechanism, user, password, b64encode(client_nonce).decode(), binding)
        self._has_proven = False

    def first_token(self) -> bytes:
        """See `SaslClient`."""
        return self._mechanism.encode() + b"\0" + str(self._scram.get_client_first()).encode()

    def answer(self, token: bytes) -> bytes | None:
        """See `SaslClient`."""
        from scramp import ScramException

        if len(token) > SERVER_TOKEN_BYTES_MAX:
            raise ProtocolError(f"a token of {self._mechanism} has {len(token)} bytes")
        try:
            text = token.decode()
            if not self._has_proven:
                self._scram.set_server_first(text)
                self._check_iterations()
                self._has_proven = True
                return str(self._scram.get_client_final()).encode()
            self._scram.set_server_final(text)
        except UnicodeDecodeError:
            raise ProtocolError(f"a token of {self._mechanism} is not UTF-8") from None
        except ScramException as error:
            what = "did not prove that it knows the password" if self._has_proven else "sent no challenge"
            raise Unauthorized(f"the bookie {what} by {self._mechanism}: {error}") from None
        return None

    def _check_iterations(self) -> None:
        iterations = int(self._scram.iterations)
        if iterations > ITERATIONS_MAX:
            raise Unauthorized(f"the bookie asks for {iterations} iterations of {self._mechanism}; the client computes {ITERATIONS_MAX}")


class PlainClient:
    """PLAIN: the password itself, over our plugin. For connections that TLS protects, and whose server is proven."""

    plugin = OWN_PLUGIN

    def __init__(self, user: str, password: str) -> None:
        if "\0" in user + password:
            raise ConfigError("a user or password with a NUL character cannot be sent by PLAIN")
        self._message = b"\0".join([b"", user.encode(), password.encode()])

    def first_token(self) -> bytes:
        """See `SaslClient`."""
        return PLAIN.encode() + b"\0" + self._message

    def answer(self, token: bytes) -> bytes | None:
        """See `SaslClient`."""
        if token:
            raise ProtocolError("the bookie answered PLAIN with a challenge, and PLAIN has none")
        return None


def _scram_client(mechanism: str, user: str, password: str, nonce: str, binding: bytes | None) -> ScramClient:
    from scramp import ScramClient, ScramException

    bound: Any = {} if binding is None else {"channel_binding": (BINDING, binding)}
    try:
        return ScramClient([mechanism], user, password, c_nonce=nonce, **bound)
    except ScramException as error:
        raise ConfigError(f"client.user or its password cannot be used for {mechanism}: {error}") from None
