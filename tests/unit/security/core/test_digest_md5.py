"""The tokens and the proof of DIGEST-MD5, against the example of RFC 2831 and the behaviour of the JDK."""

from __future__ import annotations

import pytest

from triplicate.errors import ProtocolError
from triplicate.security import digest_md5


def test_the_proofs_are_those_of_the_rfc() -> None:
    password_hash = digest_md5.hash_of("chris", "secret", "elwood.innosoft.com")
    of_client, of_server = (
        digest_md5.proof(
            password_hash,
            nonce=b"OA6MG9tEQGm2hh",
            client_nonce=b"OA6MHXh6VqTrRk",
            authorization_id=None,
            by_server=by_server,
            uri=b"imap/elwood.innosoft.com",
        )
        for by_server in (False, True)
    )
    assert of_client == b"d388dad90d4bbd760a152321f2143af7"
    assert of_server == b"ea40f60335c427b5527b84dbabcdfffd"


def test_the_proof_depends_on_the_authorization_id() -> None:
    password_hash = digest_md5.hash_of("chris", "secret")
    without, with_one = (digest_md5.proof(password_hash, nonce=b"n", client_nonce=b"c", authorization_id=each) for each in (None, b"chris"))
    assert without != with_one


def test_each_part_of_the_hash_is_in_latin_1_if_it_can_be() -> None:
    assert digest_md5.hash_of("jürgen", "x") == digest_md5._md5("jürgen:bookkeeper:x".encode("latin-1"))
    assert digest_md5.hash_of("jürgen", "жук") == digest_md5._md5("jürgen".encode("latin-1") + ":bookkeeper:жук".encode())


def test_a_challenge_of_java_is_parsed() -> None:
    token = b'realm="bookkeeper",nonce="a+b/c==",charset=utf-8,algorithm=md5-sess'
    assert digest_md5.parse_directives(token) == {
        "realm": b"bookkeeper",
        "nonce": b"a+b/c==",
        "charset": b"utf-8",
        "algorithm": b"md5-sess",
    }


def test_a_formatted_token_is_parsed_to_the_same_values() -> None:
    values = {"username": b'quote " and \\ and \x01', "cnonce": b"", "nc": b"00000001"}
    directives = [(name, value if name == "nc" else digest_md5.quoted(value)) for name, value in values.items()]
    assert digest_md5.parse_directives(digest_md5.format_directives(directives)) == values


def test_white_space_and_empty_parts_between_directives_are_passed_over() -> None:
    assert digest_md5.parse_directives(b' , A = "1" ,\r\n\t b=2 c=3,,') == {"a": b"1", "b": b"2", "c": b"3"}


@pytest.mark.parametrize(
    "token", [b"a", b"=b", b"a=", b'a="b', b'a="b\\', b'a="b"c', b"a=1,a=2", b"a=1,A=2", b"\xff=1", b"a b=1"], ids=repr
)
def test_other_tokens_are_refused(token: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        digest_md5.parse_directives(token)
    assert "=1" not in str(caught.value)
