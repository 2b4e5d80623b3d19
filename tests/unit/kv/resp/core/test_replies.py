"""Replies have the bytes of the protocol, in both versions."""

from __future__ import annotations

import pytest

from triplicate.kv.resp.core.replies import NULL_ARRAY, OK, RESP2, RESP3, ErrorReply, Push, Reply, ReplyWriter, Simple, Verbatim


def both(reply: Reply) -> tuple[bytes, bytes]:
    found = []
    for version in (RESP2, RESP3):
        writer = ReplyWriter(version)
        writer.write(reply)
        found.append(bytes(writer.out))
    return found[0], found[1]


@pytest.mark.parametrize(
    ("reply", "second", "third"),
    [
        (OK, b"+OK\r\n", b"+OK\r\n"),
        (Simple("PONG"), b"+PONG\r\n", b"+PONG\r\n"),
        (b"a\r\nb", b"$4\r\na\r\nb\r\n", b"$4\r\na\r\nb\r\n"),
        (-7, b":-7\r\n", b":-7\r\n"),
        (None, b"$-1\r\n", b"_\r\n"),
        (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
        (True, b":1\r\n", b"#t\r\n"),
        (False, b":0\r\n", b"#f\r\n"),
        (1.5, b"$3\r\n1.5\r\n", b",1.5\r\n"),
        (2.0, b"$1\r\n2\r\n", b",2\r\n"),
        (float("-inf"), b"$4\r\n-inf\r\n", b",-inf\r\n"),
        (Verbatim("ab"), b"$2\r\nab\r\n", b"=6\r\ntxt:ab\r\n"),
        ([1, [b"a"], None], b"*3\r\n:1\r\n*1\r\n$1\r\na\r\n$-1\r\n", b"*3\r\n:1\r\n*1\r\n$1\r\na\r\n_\r\n"),
        ({b"a": 1}, b"*2\r\n$1\r\na\r\n:1\r\n", b"%1\r\n$1\r\na\r\n:1\r\n"),
        ({b"b", b"a"}, b"*2\r\n$1\r\na\r\n$1\r\nb\r\n", b"~2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        (Push((b"message", 1)), b"*2\r\n$7\r\nmessage\r\n:1\r\n", b">2\r\n$7\r\nmessage\r\n:1\r\n"),
    ],
)
def test_a_reply_has_the_form_of_its_version(reply: Reply, second: bytes, third: bytes) -> None:
    assert both(reply) == (second, third)


def test_an_error_is_one_line_whatever_a_client_has_sent() -> None:
    assert both(ErrorReply("ERR 'a\r\n+OK\r\n'"))[0] == b"-ERR 'a  +OK  '\r\n"
    assert both(ErrorReply("ERR \udc80"))[0] == b"-ERR \\udc80\r\n"
