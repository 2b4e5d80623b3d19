"""The client's side of SASL against servers that know the password, and against those that only pretend to."""

from __future__ import annotations

from functools import partial

import pytest
from scramp import ScramMechanism

from triplicate.errors import ConfigError, ProtocolError, Unauthorized
from triplicate.security.core import digest_md5
from triplicate.security.core.sasl_client import (
    DigestMd5Client,
    PlainClient,
    SaslClient,
    ScramSha256Client,
)

USER, PASSWORD = "bookkeeper-writer", 'pass "word" \\ ü'
NONCE = bytes(range(24))
SERVER_NONCE = b"c2VydmVyIG5vbmNl"
CHALLENGE = b'realm="bookkeeper",nonce="' + SERVER_NONCE + b'",charset=utf-8,algorithm=md5-sess'
SCRAM = ScramMechanism("SCRAM-SHA-256")
SCRAM_PLUS = ScramMechanism("SCRAM-SHA-256-PLUS")


def digest_client(password: str = PASSWORD, nonce: bytes = NONCE) -> DigestMd5Client:
    return DigestMd5Client(USER, password, nonce)


def rspauth_for(response: bytes, password: str = PASSWORD) -> bytes:
    """The proof of a server that knows the password, for the response of a client; checks that response as a server does."""
    found = digest_md5.parse_directives(response)
    user = found["username"]
    assert found["digest-uri"] == b"bookkeeper/bookkeeper"
    assert found["nc"] == b"00000001"
    assert found["qop"] == b"auth"
    password_hash = digest_md5.hash_of(user.decode(), password)
    prove = partial(digest_md5.proof, password_hash, nonce=found["nonce"], client_nonce=found["cnonce"], authorization_id=found["authzid"])
    assert found["response"] == prove()
    return b"rspauth=" + prove(by_server=True)


def test_digest_md5_proves_both_sides() -> None:
    client = digest_client()
    assert client.plugin == "sasl"
    assert client.first_token() == b""
    response = client.answer(CHALLENGE)
    assert response is not None
    assert digest_md5.parse_directives(response)["charset"] == b"utf-8"
    assert PASSWORD.encode() not in response
    assert client.answer(rspauth_for(response)) is None


def test_digest_md5_works_with_a_challenge_of_defaults_only() -> None:
    client = digest_client()
    response = client.answer(b'nonce="' + SERVER_NONCE + b'",algorithm=md5-sess')
    assert response is not None
    found = digest_md5.parse_directives(response)
    assert "charset" not in found
    assert found["realm"] == b"bookkeeper"
    assert client.answer(rspauth_for(response)) is None


@pytest.mark.parametrize("proof", [b"rspauth=" + b"0" * 32, b"rspauth=0", b"other=1", b""])
def test_a_server_that_does_not_know_the_password_is_refused(proof: bytes) -> None:
    client = digest_client()
    assert client.answer(CHALLENGE) is not None
    with pytest.raises(Unauthorized, match="did not prove") as caught:
        client.answer(proof)
    assert PASSWORD not in str(caught.value)


def test_a_recorded_login_of_a_server_is_of_no_use_again() -> None:
    """A server that recorded a login can repeat its challenge and its proof, but not for the next client nonce."""
    first = digest_client(nonce=b"1" * 24)
    response = first.answer(CHALLENGE)
    assert response is not None
    recorded = rspauth_for(response)
    again = digest_client(nonce=b"2" * 24)
    assert again.answer(CHALLENGE) != response
    with pytest.raises(Unauthorized, match="did not prove"):
        again.answer(recorded)


def test_a_second_challenge_is_not_answered() -> None:
    """One password hash over many challenges would help a server to guess the password."""
    client = digest_client()
    assert client.answer(CHALLENGE) is not None
    with pytest.raises(Unauthorized, match="did not prove"):
        client.answer(CHALLENGE)


@pytest.mark.parametrize(
    ("challenge", "told"),
    [
        (b"", "no nonce"),
        (b"rspauth=" + b"0" * 32, "no nonce"),
        (b'nonce="x"', "another algorithm"),
        (b'nonce="x",algorithm=md5', "another algorithm"),
        (b'nonce="x",algorithm=md5-sess,charset=latin-9', "character set"),
        (b'nonce="x",algorithm=md5-sess,qop="auth-conf,auth-int"', "use TLS"),
        (b'nonce="x",nonce="y",algorithm=md5-sess', "twice"),
        (b"\xff" * 10, "no NAME=VALUE"),
        (b"x" * 5000, "5000 bytes"),
    ],
)
def test_other_challenges_are_refused(challenge: bytes, told: str) -> None:
    with pytest.raises(ProtocolError, match=told):
        digest_client().answer(challenge)


def test_a_user_whom_the_server_cannot_express_is_refused() -> None:
    client = DigestMd5Client("жук", PASSWORD, NONCE)
    with pytest.raises(ConfigError, match="8859-1"):
        client.answer(b'nonce="x",algorithm=md5-sess')
    assert DigestMd5Client("жук", PASSWORD, NONCE).answer(CHALLENGE) is not None


def scram_login(client: SaslClient, password: str = PASSWORD, binding: bytes | None = None) -> None:
    """A whole login at a server that knows this password."""
    mechanism = SCRAM if binding is None else SCRAM_PLUS
    salt, stored, server_key, iterations = mechanism.make_auth_info(password)
    bound = None if binding is None else ("tls-server-end-point", binding)
    server = mechanism.make_server(lambda user: (salt, stored, server_key, iterations), channel_binding=bound)
    name, _, message = client.first_token().partition(b"\0")
    assert name.decode() == mechanism.name
    server.set_client_first(message.decode())
    response = client.answer(server.get_server_first().encode())
    assert response is not None
    server.set_client_final(response.decode())
    assert client.answer(server.get_server_final().encode()) is None


def test_scram_proves_both_sides() -> None:
    client = ScramSha256Client(USER, PASSWORD, NONCE)
    assert client.plugin == "triplicate-sasl"
    scram_login(client)


def test_scram_is_bound_to_the_connection() -> None:
    scram_login(ScramSha256Client(USER, PASSWORD, NONCE, b"hash of a certificate"), binding=b"hash of a certificate")
    with pytest.raises(Exception, match="channel"):
        scram_login(ScramSha256Client(USER, PASSWORD, NONCE, b"hash of a certificate"), binding=b"hash of another")


@pytest.mark.parametrize("final", [b"v=" + b"A" * 43 + b"=", b"e=invalid-proof", b"v=", b"", b"x", b"\xff"])
def test_a_scram_server_that_does_not_know_the_verifier_is_refused(final: bytes) -> None:
    client = ScramSha256Client(USER, PASSWORD, NONCE)
    nonce = client.first_token().rpartition(b"r=")[2]
    assert client.answer(b"r=" + nonce + b"more,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096") is not None
    with pytest.raises((Unauthorized, ProtocolError)) as caught:
        client.answer(final)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"r=another,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096",
        b"r=NONCE,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096",
        b"r=NONCEmore,s=c2FsdHNhbHRzYWx0c2FsdA==,i=1",
        b"r=NONCEmore,s=c2FsdHNhbHRzYWx0c2FsdA==,i=5000000",
        b"r=NONCEmore,s=,i=4096",
        b"r=NONCEmore,s=c2FsdHNhbHRzYWx0c2FsdA==,i=" + b"9" * 5000,
    ],
)
def test_other_challenges_of_scram_are_refused(challenge: bytes) -> None:
    client = ScramSha256Client(USER, PASSWORD, NONCE)
    nonce = client.first_token().rpartition(b"r=")[2]
    with pytest.raises((Unauthorized, ProtocolError)):
        client.answer(challenge.replace(b"NONCE", nonce))


def test_plain_sends_the_password_and_expects_no_more() -> None:
    client = PlainClient(USER, PASSWORD)
    assert client.first_token() == b"PLAIN\0\0" + USER.encode() + b"\0" + PASSWORD.encode()
    assert client.answer(b"") is None
    with pytest.raises(ProtocolError, match="challenge"):
        client.answer(b"once more")
    with pytest.raises(ConfigError, match="NUL"):
        PlainClient(USER, "a\0b")
