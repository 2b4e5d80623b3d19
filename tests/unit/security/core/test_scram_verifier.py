"""Verifiers of passwords."""

from __future__ import annotations

from base64 import b64decode

import pytest

from triplicate.errors import FormatError
from triplicate.security import ScramVerifier
from triplicate.security.core.scram_verifier import prepared

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
"""Of the example of RFC 7677: user "user", password "pencil", 4096 iterations."""


def test_the_keys_are_those_of_the_example_of_rfc_7677() -> None:
    import hashlib
    import hmac

    verifier = ScramVerifier.of_password("pencil", SALT, 4096)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    message = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    assert hmac.new(verifier.server_key, message, hashlib.sha256).digest() == b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    signature = hmac.new(verifier.stored_key, message, hashlib.sha256).digest()
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
    assert hashlib.sha256(client_key).digest() == verifier.stored_key


def test_a_verifier_is_read_as_it_was_written_and_matches_its_password_only() -> None:
    verifier = ScramVerifier.of_password("sécret", b"sixteen bytes...", 4096)
    assert ScramVerifier.parse(verifier.text) == verifier
    assert verifier.matches("sécret")
    assert not any(verifier.matches(other) for other in ("secret", "sécre", "sécret ", ""))


def test_the_repr_of_a_verifier_shows_no_key() -> None:
    assert repr(ScramVerifier.of_password("x", SALT)) == "ScramVerifier(iterations=4096)"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "md5aabb",
        "SCRAM-SHA-256$4096:c2FsdA==$AAAA:AAAA",
        "SCRAM-SHA-256$0:c2FsdA==$" + "A" * 43 + "=:" + "A" * 43 + "=",
        "SCRAM-SHA-256$9999999:c2FsdA==$" + "A" * 43 + "=:" + "A" * 43 + "=",
        "SCRAM-SHA-256$4096:c2FsdA=$" + "A" * 43 + "=:" + "A" * 43 + "=",
    ],
)
def test_a_damaged_verifier_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        ScramVerifier.parse(text)
    assert len(text) < 5 or text not in str(caught.value)


def test_passwords_are_prepared_as_rfc_4013_says_and_kept_where_it_forbids_them() -> None:
    assert prepared("I\u00adX") == "IX"
    assert prepared("\u00aa") == "a"
    assert prepared("\u2168") == "IX"
    assert prepared("a\u00a0b") == "a b"
    assert prepared("a\x07b") == "a\x07b"
    assert prepared("\u06271") == "\u06271"
