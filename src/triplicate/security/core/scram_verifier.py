"""Verifiers of passwords: what a server keeps in place of a password, in PostgreSQL's text form.

``SCRAM-SHA-256$4096:SALT$STORED:SERVER``, the three values in base64. A verifier lets a server check a password, and prove that it knows
the verifier. It does not let its reader log in.

Source: RFC 5802, RFC 7677; PostgreSQL's documentation of `pg_authid.rolpassword`.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from dataclasses import dataclass, field

from triplicate.errors import FormatError

ITERATIONS = 4096
"""PostgreSQL's default number of iterations (`scram_iterations`), and the least that RFC 7677 allows."""
ITERATIONS_MAX = 1_000_000
"""A verifier with more would let its owner occupy the processor for long at each login."""
SALT_BYTES = 16
KEY_BYTES = 32
PASSWORD_BYTES_MAX = 1024

_TEXT = re.compile(r"SCRAM-SHA-256\$([1-9][0-9]{0,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """A verifier of one password. Its keys are not part of its `repr`."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of_password(cls, password: str, salt: bytes, iterations: int = ITERATIONS) -> ScramVerifier:
        """The verifier of a password. It takes milliseconds, so servers compute it on a worker.

        Args:
            salt: random, new for each password.
        """
        salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, iterations)
        return cls(iterations, salt, hashlib.sha256(_keyed(salted, b"Client Key")).digest(), _keyed(salted, b"Server Key"))

    @classmethod
    def parse(cls, text: str) -> ScramVerifier:
        """Raises FormatError: `text` is not a verifier. The error does not repeat it."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise FormatError("this is not a verifier of the form SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER")
        try:
            salt, stored, server = (b64decode(part, validate=True) for part in match.groups()[1:])
        except binascii.Error:
            raise FormatError("a value of a SCRAM verifier is not base64") from None
        iterations = int(match[1])
        if not salt or len(stored) != KEY_BYTES or len(server) != KEY_BYTES or iterations > ITERATIONS_MAX:
            raise FormatError(f"a SCRAM verifier has a salt, two keys of {KEY_BYTES} bytes, and at most {ITERATIONS_MAX} iterations")
        return cls(iterations, salt, stored, server)

    @property
    def text(self) -> str:
        """The form that `parse` reads. It is a secret nearly as much as the password: with it one can pose as the server."""
        salt, stored, server = (b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key))
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"

    def matches(self, password: str) -> bool:
        """Whether this is the password. It takes as long for any password of the same length; on a worker, as `of_password`."""
        other = ScramVerifier.of_password(password, self.salt, self.iterations)
        return hmac.compare_digest(other.stored_key, self.stored_key)


def prepared(password: str) -> str:
    """The password by SASLprep, or as it is where SASLprep forbids a character: PostgreSQL does the same. Source: RFC 4013."""
    mapped = "".join(" " if stringprep.in_table_c12(each) else each for each in password if not stringprep.in_table_b1(each))
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    if not normal or any(any(is_in(each) for is_in in _FORBIDDEN) for each in normal):
        return password
    right_to_left = [stringprep.in_table_d1(each) for each in normal]
    if any(right_to_left) and (any(map(stringprep.in_table_d2, normal)) or not right_to_left[0] or not right_to_left[-1]):
        return password
    return normal


_FORBIDDEN = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _keyed(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()
