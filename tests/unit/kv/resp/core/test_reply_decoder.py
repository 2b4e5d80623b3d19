"""A client reads no reply beyond its limits."""

from __future__ import annotations

import pytest

from triplicate.errors import ProtocolError
from triplicate.kv.resp.core.reply_decoder import NESTING_MAX, REPLY_BYTES_MAX, ReplyDecoder


@pytest.mark.parametrize(
    "data",
    [
        b"$%d\r\n" % (REPLY_BYTES_MAX + 1),
        b"*%d\r\n" % REPLY_BYTES_MAX,
        b"*1\r\n" * (NESTING_MAX + 1),
        b"*2\r\n$%d\r\n" % REPLY_BYTES_MAX,
        b"+" + b"a" * 70_000,
        b"?\r\n",
        b"\r\n",
        b":x\r\n",
        b"#x\r\n",
        b"$-2\r\n",
        b"%-2\r\n",
        b"$1\r\nabc\r\n",
    ],
)
def test_what_is_no_reply_or_beyond_a_limit_is_refused(data: bytes) -> None:
    decoder = ReplyDecoder()
    decoder.feed(data)
    with pytest.raises(ProtocolError):
        decoder.next_reply()


def test_verbatim_texts_and_long_errors_are_read() -> None:
    decoder = ReplyDecoder()
    decoder.feed(b"=7\r\ntxt:abc\r\n!5\r\nERR x\r\n~1\r\n:1\r\n(12\r\n")
    found = [decoder.next_reply() for _ in range(4)]
    assert str(found) == "[(b'abc',), (ErrorReply(text='ERR x'),), ([1],), (12,)]"
    assert decoder.next_reply() is None
