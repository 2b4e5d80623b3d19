"""Requests are read as Redis reads them, within their limits."""

from __future__ import annotations

import pytest

from triplicate.errors import ProtocolError
from triplicate.kv.resp.core.resp_requests import BEFORE_LOGIN, LINE_BYTES_MAX, RequestBuffer, WordLimits, split_words

LIMITS = WordLimits(arguments=8, request_bytes=100)


def all_of(data: bytes, limits: WordLimits = LIMITS) -> list[list[bytes]]:
    buffer = RequestBuffer(limits)
    buffer.feed(data)
    found = []
    while (request := buffer.next_request()) is not None:
        found.append(request)
    return found


def test_pipelined_requests_of_both_forms_are_read_in_order() -> None:
    assert all_of(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nSET  b 'x y'\r\n\r\n*0\r\n*-1\r\nPING\n*1\r\n$0\r\n\r\n") == [
        [b"GET", b"a"],
        [b"SET", b"b", b"x y"],
        [b"PING"],
        [b""],
    ]


def test_a_value_may_hold_any_bytes() -> None:
    value = bytes(range(100)).replace(b"\0", b"\r\n")[:90]
    assert all_of(b"*1\r\n$%d\r\n%b\r\n" % (len(value), value)) == [[value]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"*9\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*x\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*1_0\r\n", "invalid multibulk length"),
        (b"*" + b"1" * 40, "too big mbulk count string"),
        (b"*1\r\n$101\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*2\r\n$60\r\n" + b"a" * 60 + b"\r\n$41\r\n", "invalid bulk length"),
        (b"*1\r\n$" + b"1" * 40, "too big bulk count string"),
        (b"*1\r\n*1\r\n", r"expected '\$', got '\*'"),
        (b"*1\r\n:1\r\n", r"expected '\$', got ':'"),
        (b"*1\r\n$1\r\nab\r\n", "expected CRLF"),
        (b'SET a "b\r\n', "unbalanced quotes"),
        (b'SET a "b"c\r\n', "unbalanced quotes"),
        (b"a " * 40 + b"\r\n", "invalid multibulk length"),
        (b"a" * 100, "too big inline request"),
    ],
)
def test_a_request_that_is_none_or_beyond_a_limit_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        all_of(data)


def test_a_size_is_refused_before_its_bytes_arrive() -> None:
    """No memory is taken for a size that is only announced."""
    buffer = RequestBuffer(WordLimits(arguments=2**31, request_bytes=100))
    buffer.feed(b"*2000000000\r\n")
    assert buffer.next_request() is None
    buffer.feed(b"$2000000000\r\n")
    with pytest.raises(ProtocolError, match="invalid bulk length"):
        buffer.next_request()


def test_a_stranger_may_send_short_requests_only() -> None:
    for data in (b"*11\r\n", b"*1\r\n$16385\r\n"):
        with pytest.raises(ProtocolError, match="unauthenticated"):
            all_of(data, BEFORE_LOGIN)


def test_the_limits_may_change_between_two_requests() -> None:
    buffer = RequestBuffer(BEFORE_LOGIN)
    buffer.feed(b"PING\r\n*12\r\n")
    assert buffer.next_request() == [b"PING"]
    buffer.limits = WordLimits(12, 100)
    assert buffer.next_request() is None


def test_words_and_their_escapes_are_those_of_redis() -> None:
    assert split_words(b"""  a "b\\x41\\n\\"" 'c\\'d\\n' e\\f """) == [b"a", b'bA\n"', b"c'd\\n", b"e\\f"]
    assert split_words(b" ") == []
    assert split_words(b"\"\" ''") == [b"", b""]


def test_a_long_value_in_short_chunks_is_read_in_linear_time() -> None:
    """Each chunk is looked at once: the bytes are not joined before all have arrived."""
    buffer = RequestBuffer(WordLimits(8, 64 * 1024 * 1024))
    size = 16 * 1024 * 1024
    buffer.feed(b"*1\r\n$%d\r\n" % size)
    chunk = b"a" * 1024
    for _ in range(size // len(chunk)):
        assert buffer.next_request() is None
        buffer.feed(chunk)
    assert len(buffer._later) == size // len(chunk) - 1, "nothing was joined"
    assert buffer.next_request() is None
    buffer.feed(b"\r\n")
    assert buffer.next_request() == [b"a" * size]
    assert not buffer.is_begun


def test_a_line_that_never_ends_is_refused_at_its_limit() -> None:
    buffer = RequestBuffer(WordLimits(8, 1024 * 1024))
    for _ in range(LINE_BYTES_MAX // 1024 - 1):
        buffer.feed(b"a" * 1024)
        assert buffer.next_request() is None
    buffer.feed(b"a" * 1024)
    with pytest.raises(ProtocolError, match="too big inline request"):
        buffer.next_request()
