"""The server's part of an authentication by SCRAM-SHA-256, with and without channel binding. Pure.

`scramp`, the library for SCRAM, refuses the empty user name that PostgreSQL's clients send, so its server cannot serve them.

Source: RFC 5802, RFC 7677, RFC 5929 (tls-server-end-point); PostgreSQL's documentation, "SASL Authentication".
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode

from triplicate.errors import ProtocolError
from triplicate.security.core.scram_verifier import ITERATIONS, KEY_BYTES, SALT_BYTES, ScramVerifier

SCRAM = "SCRAM-SHA-256"
SCRAM_PLUS = "SCRAM-SHA-256-PLUS"
BINDING = "tls-server-end-point"

_FIRST = re.compile(r"(?P<header>(?P<flag>[ny]|p=[A-Za-z0-9.\-]+),(?P<identity>[^,]*),)(?P<bare>(?P<more>m=.*)|.*)", re.ASCII | re.DOTALL)
_BARE = re.compile(r"n=[^,]*,r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(,[A-Za-z]=[^,]+)*", re.DOTALL)
_FINAL = re.compile(
    r"(?P<unproved>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(,[A-Za-z]=[^,]+)*),p=(?P<proof>[A-Za-z0-9+/=]+)",
    re.DOTALL,
)


class ScramExchange:
    """One authentication: the client's first message, the server's `challenge`, and the client's `final` message.

    Args:
        verifier: of the role's password.
        message: the client's first message.
        nonce: the server's part of the nonce: printable, unpredictable, new for each exchange.
        mechanism: `SCRAM` or `SCRAM_PLUS`, as the client has chosen.
        end_point: the data of the channel binding; None where the server does not offer `SCRAM_PLUS`.

    Raises:
        ProtocolError: the message is malformed, or contradicts the mechanism or the offer. The error repeats nothing of the message.
    """

    def __init__(self, verifier: ScramVerifier, message: bytes, nonce: str, mechanism: str, end_point: bytes | None) -> None:
        found = _FIRST.fullmatch(_decoded(message))
        if found is None:
            raise ProtocolError("malformed SCRAM message: it does not begin with a GS2 header")
        self._check_header(found["flag"], mechanism, end_point)
        if found["identity"]:
            raise ProtocolError("the client uses an authorization identity, which is not supported")
        if found["more"]:
            raise ProtocolError("the client requires an unsupported SCRAM extension")
        bare = _BARE.fullmatch(found["bare"])
        if bare is None:
            raise ProtocolError("malformed SCRAM message: a user name and a nonce of printable characters are expected")
        self._verifier = verifier
        self._bare = found["bare"]
        bound = end_point if mechanism == SCRAM_PLUS and end_point is not None else b""
        self._binding = found["header"].encode() + bound
        self._nonce = bare["nonce"] + nonce
        self.challenge = f"r={self._nonce},s={b64encode(verifier.salt).decode()},i={verifier.iterations}"
        """The server's first message."""

    @staticmethod
    def _check_header(flag: str, mechanism: str, end_point: bytes | None) -> None:
        is_plus = mechanism == SCRAM_PLUS
        if is_plus and (end_point is None or flag != f"p={BINDING}"):
            raise ProtocolError(f"the client selected {SCRAM_PLUS}, but not the channel binding {BINDING}")
        if not is_plus and flag.startswith("p"):
            raise ProtocolError(f"the client selected {SCRAM} without channel binding, but its message has channel binding data")
        if flag == "y" and end_point is not None:
            # Somebody between the two has removed the mechanism from the server's offer.
            raise ProtocolError("the client supports SCRAM channel binding but thinks that the server does not; this server does")

    def final(self, message: bytes) -> str | None:
        """Check the client's final message.

        Returns:
            the server's final message; None if the client does not have the password.

        Raises:
            ProtocolError: the message is malformed, is of another exchange, or is bound to another connection.
        """
        found = _FINAL.fullmatch(_decoded(message))
        if found is None:
            raise ProtocolError("malformed SCRAM message: a channel binding, a nonce and a proof are expected")
        if not hmac.compare_digest(_from_base64(found["binding"]), self._binding):
            raise ProtocolError("SCRAM channel binding check failed: the client's connection ends at another server")
        if not hmac.compare_digest(found["nonce"].encode(), self._nonce.encode()):
            raise ProtocolError("invalid SCRAM response: the nonce does not match")
        proof = _from_base64(found["proof"])
        if len(proof) != KEY_BYTES:
            raise ProtocolError("malformed SCRAM message: the proof has another length")
        text = ",".join((self._bare, self.challenge, found["unproved"])).encode()
        signature = hmac.digest(self._verifier.stored_key, text, "sha256")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key):
            return None
        return "v=" + b64encode(hmac.digest(self._verifier.server_key, text, "sha256")).decode()


def mock_verifier(secret: bytes, name: str) -> ScramVerifier:
    """A verifier for a role that does not exist: always the same for a name, like a real one, and of no password.

    Args:
        secret: of the server. Its owner can distinguish such verifiers from real ones.
    """
    salt, stored, server = (hmac.digest(secret, part + name.encode(), "sha256") for part in (b"salt\0", b"stored\0", b"server\0"))
    return ScramVerifier(ITERATIONS, salt[:SALT_BYTES], stored, server)


def _decoded(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ProtocolError("malformed SCRAM message: it is not UTF-8") from None


def _from_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise ProtocolError("malformed SCRAM message: a value is not base64") from None
