"""Requests are the same however their bytes are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import ProtocolError
from triplicate.kv.resp.core.resp_requests import RequestBuffer, WordLimits

LIMITS = WordLimits(arguments=6, request_bytes=60)

words = st.lists(st.binary(max_size=20), min_size=1, max_size=7)
arrays = words.map(lambda found: b"*%d\r\n" % len(found) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in found))
pieces = st.one_of(
    arrays,
    arrays.map(lambda data: data[:-1]),
    st.binary(max_size=30),
    st.sampled_from([b"PING\r\n", b"SET a 'b c'\n", b'"x\r\n', b"\r\n", b"*0\r\n", b"*", b"$", b"$3\r\n", b"*2\r\n", b"a" * 59]),
)


def read(data: bytes, cuts: list[int]) -> list[object]:
    buffer, found = RequestBuffer(LIMITS), list[object]()
    at = 0
    try:
        for cut in [*cuts, len(data)]:
            buffer.feed(data[at:cut])
            at = cut
            while (request := buffer.next_request()) is not None:
                assert request, "a request has a word"
                found.append(request)
    except ProtocolError as error:
        found.append(str(error))
    else:
        found.append(buffer.is_begun)
    return found


@given(st.lists(pieces, max_size=6).map(b"".join), st.data())
def test_requests_are_the_same_however_they_are_cut(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=20)))
    assert read(data, cuts) == read(data, []) == read(data, list(range(len(data))))


@given(st.lists(words.filter(lambda found: len(found) <= 6 and sum(map(len, found)) <= 60), max_size=6))
def test_what_a_client_encodes_is_read(requests: list[list[bytes]]) -> None:
    data = b"".join(b"*%d\r\n" % len(each) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in each) for each in requests)
    assert read(data, []) == [*requests, False]
