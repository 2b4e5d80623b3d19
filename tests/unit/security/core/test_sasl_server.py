"""The server's side of SASL without a network: order of tokens, unknown users, constant time."""

from __future__ import annotations

import ast
import inspect
import textwrap
from base64 import b64encode
from collections.abc import Callable

import pytest
from scramp import ScramClient

from triplicate.security import (
    MECHANISMS,
    BookieRole,
    LoginChallenge,
    LoginProven,
    LoginRefusal,
    LoginRefused,
    PasswordCheck,
    SaslServer,
    ScramExchange,
    ScramVerifier,
    User,
    digest_md5,
    new_user,
)
from triplicate.security.core.sasl_server import DigestMd5Server, PlainServer
from triplicate.security.core.users import HASH_BYTES

WRITER = new_user("writer", "secret", (BookieRole.WRITE,), bytes(16))
STRANGER = User("", (), ScramVerifier.of_password("nobody knows it", bytes(16)), bytes(HASH_BYTES))


class OneUser:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def find(self, name: str) -> tuple[User, bool]:
        self.asked.append(name)
        return (WRITER, True) if name == "writer" else (STRANGER, False)


def server(*offered: str, end_point: bytes | None = None) -> SaslServer:
    return SaslServer(OneUser(), offered or MECHANISMS, bytes, end_point)


def respond(challenge: LoginChallenge, user: str = "writer", password: str = "secret", client_nonce: bytes = b"c") -> bytes:
    nonce = digest_md5.parse_directives(challenge.token)["nonce"]
    proof = digest_md5.proof(digest_md5.hash_of(user, password), nonce=nonce, client_nonce=client_nonce, authorization_id=None)
    return digest_md5.format_directives(
        [
            ("username", digest_md5.quoted(user.encode())),
            ("realm", b'"bookkeeper"'),
            ("nonce", digest_md5.quoted(nonce)),
            ("cnonce", digest_md5.quoted(client_nonce)),
            ("digest-uri", b'"bookkeeper/bookkeeper"'),
            ("response", proof),
        ]
    )


def test_the_challenge_is_that_of_java() -> None:
    first = server().step("sasl", b"a first token has no meaning")
    assert isinstance(first, LoginChallenge)
    nonce = b64encode(bytes(30))
    assert first.token == b'realm="bookkeeper",nonce="' + nonce + b'",charset=utf-8,algorithm=md5-sess'


def test_digest_md5_proves_the_user_and_then_the_server() -> None:
    one = server()
    first = one.step("sasl", b"")
    assert isinstance(first, LoginChallenge)
    last = one.step("sasl", respond(first))
    assert isinstance(last, LoginProven)
    assert last.user is WRITER
    assert last.token.startswith(b"rspauth=")
    assert one.mechanism == "DIGEST-MD5"


@pytest.mark.parametrize("plus", [False, True])
def test_scram_proves_the_user_and_then_the_server(plus: bool) -> None:
    one = server(end_point=b"hash")
    name = "SCRAM-SHA-256-PLUS" if plus else "SCRAM-SHA-256"
    client = ScramClient([name], "writer", "secret", **({"channel_binding": ("tls-server-end-point", b"hash")} if plus else {}))
    first = one.step("triplicate-sasl", f"{name}\0{client.get_client_first()}".encode())
    assert isinstance(first, LoginChallenge)
    client.set_server_first(first.token.decode())
    last = one.step("triplicate-sasl", client.get_client_final().encode())
    assert isinstance(last, LoginProven)
    client.set_server_final(last.token.decode())


def test_an_unknown_user_is_challenged_like_a_known_one_and_refused_at_the_end() -> None:
    one = server()
    first = one.step("triplicate-sasl", b"SCRAM-SHA-256\0n,,n=stranger,r=x")
    assert isinstance(first, LoginChallenge)
    nonce = dict(part.split("=", 1) for part in first.token.decode().split(","))["r"]
    last = one.step("triplicate-sasl", f"c=biws,r={nonce},p={b64encode(bytes(32)).decode()}".encode())
    assert last == LoginRefused(LoginRefusal.UNPROVEN)
    digest = server()
    challenge = digest.step("sasl", b"")
    assert isinstance(challenge, LoginChallenge)
    assert digest.step("sasl", respond(challenge, "stranger")) == LoginRefused(LoginRefusal.UNPROVEN)


def test_plain_is_checked_on_a_worker_also_for_unknown_users() -> None:
    for name, password, is_right in (("writer", "secret", True), ("writer", "secre", False), ("stranger", "nobody knows it", False)):
        step = server().step("triplicate-sasl", f"PLAIN\0\0{name}\0{password}".encode())
        assert isinstance(step, PasswordCheck)
        assert password not in repr(step)
        assert isinstance(step.verdict(step.compare()), LoginProven) is is_right


def test_the_name_in_a_message_of_scram_is_unescaped() -> None:
    users = OneUser()
    SaslServer(users, MECHANISMS, bytes, None).step("triplicate-sasl", b"SCRAM-SHA-256\0n,,n=a=2Cb=3D2C,r=x")
    assert users.asked == ["a,b=2C"]


def test_no_token_is_processed_after_the_end() -> None:
    one = server()
    challenge = one.step("sasl", b"")
    assert isinstance(challenge, LoginChallenge)
    assert isinstance(one.step("sasl", respond(challenge, password="wrong")), LoginRefused)
    assert one.step("sasl", respond(challenge)) == LoginRefused(LoginRefusal.MALFORMED)


def test_the_plugin_stays_that_of_the_first_token() -> None:
    one = server()
    assert one.accepts("sasl")
    assert one.accepts("triplicate-sasl")
    assert not one.accepts("")
    one.step("sasl", b"")
    assert one.accepts("sasl")
    assert not one.accepts("triplicate-sasl")


@pytest.mark.parametrize(("plugin", "token"), [("sasl", b""), ("triplicate-sasl", b"PLAIN\0\0writer\0secret"), ("triplicate-sasl", b"X\0")])
def test_a_mechanism_that_is_not_offered_is_refused(plugin: str, token: bytes) -> None:
    assert server("SCRAM-SHA-256").step(plugin, token) == LoginRefused(LoginRefusal.MECHANISM)


def test_no_step_shows_a_secret() -> None:
    assert "secret" not in repr(PasswordCheck(WRITER, True, "secret"))
    assert "rspauth" not in repr(LoginProven(WRITER, b"rspauth=1"))
    assert WRITER.scram.text.split(":")[-1] not in repr(WRITER)


def equalities(function: Callable[..., object]) -> list[str]:
    """Comparisons by == and != of a function whose sides are not constants or lengths."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
            text = ast.unparse(node)
            if any(word in text for word in ("proof", "key", "response", "nonce'", "password", "hash", "rspauth")) and "len(" not in text:
                found.append(text)
    return found


@pytest.mark.parametrize(
    "function", [DigestMd5Server.step, DigestMd5Server._checked_name, ScramExchange.final, ScramVerifier.matches, PlainServer.step], ids=str
)
def test_secrets_are_compared_in_constant_time(function: Callable[..., object]) -> None:
    assert equalities(function) == []


def test_the_check_of_comparisons_finds_them() -> None:
    def careless(proof: bytes, password_hash: bytes) -> bool:
        return proof == password_hash

    assert equalities(careless) == ["proof == password_hash"]
