"""Replies that the server writes are read as they were, however their bytes are cut; other bytes are refused and never more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import ProtocolError
from triplicate.kv.resp.core.replies import RESP3, ErrorReply, Push, Reply, ReplyWriter, Simple
from triplicate.kv.resp.core.reply_decoder import ReplyDecoder

lines = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=10)
values: st.SearchStrategy[Reply] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.binary(max_size=20),
        lines.map(Simple),
        lines.map(ErrorReply),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.binary(max_size=4), inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda items: Push(tuple(items))),
    ),
    max_leaves=10,
).filter(lambda value: _depth(value) < 8)


def _depth(value: Reply) -> int:
    if isinstance(value, Push):
        return 1 + max(map(_depth, value.items), default=0)
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def read(data: bytes, cuts: list[int]) -> list[object]:
    decoder, found, at = ReplyDecoder(), list[object](), 0
    try:
        for cut in [*cuts, len(data)]:
            decoder.feed(data[at:cut])
            at = cut
            while (reply := decoder.next_reply()) is not None:
                found.append(reply[0])
    except ProtocolError as error:
        found.append(str(error))
    return found


@given(st.lists(values, max_size=4), st.data())
def test_what_the_server_writes_is_read_however_it_is_cut(replies: list[Reply], draw: st.DataObject) -> None:
    writer = ReplyWriter(RESP3)
    for reply in replies:
        writer.write(reply)
    data = bytes(writer.out)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=10)))
    found = read(data, cuts)
    assert found == replies
    assert [type(each) for each in found] == [type(each) for each in replies]


@given(
    st.lists(st.one_of(st.binary(max_size=12), st.sampled_from([b"*2\r\n", b"%1\r\n", b"$3\r\nabc\r\n", b":1\r\n", b"_\r\n"]))).map(
        b"".join
    )
)
def test_any_bytes_are_read_or_refused_in_the_same_way_however_they_are_cut(data: bytes) -> None:
    assert repr(read(data, [])) == repr(read(data, list(range(len(data)))))
