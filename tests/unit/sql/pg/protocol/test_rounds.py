"""Rounds are found by their bytes, and are answered as their messages are when each arrives by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.sql.pg.chunk_rig import ChunkClient, with_connections
from tests.unit.sql.pg.local_engine import LocalDatabase
from tests.unit.sql.pg.raw_client import SYNC, bind, describe, execute, parse, query
from triplicate.errors import ProtocolError, SqlError
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.client_connections import ClientConnections
from triplicate.sql.pg.protocol.conversation import Conversation
from triplicate.sql.pg.protocol.rounds import SHAPE_BYTES_MAX, Round, RoundBuffer

LIMIT = 10_000
TERMINATE = b"X\0\0\0\4"

# Bytes and messages.

_values = st.lists(st.one_of(st.none(), st.binary(max_size=6), st.sampled_from((b"\0\0", b"\xff\xff\xff\xff"))), max_size=4)
_formats = st.lists(st.integers(-1, 2), max_size=3)
_binds = st.builds(
    lambda values, statement, formats, results: bind(*values, statement=statement, formats=formats, results=results),
    _values,
    st.sampled_from(("", "s", "é")),
    _formats,
    _formats,
)


def _found(data: bytes, *before: bytes) -> Round | None:
    """The round that a chunk begins with, found by a buffer that has found others before."""
    buffer = RoundBuffer(LIMIT)
    for chunk in before:
        buffer.feed(chunk)
        earlier = buffer.find_round()
        assert earlier is not None
        buffer.skip(earlier)
    buffer.feed(data)
    return buffer.find_round()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(binds=st.lists(_binds, min_size=1, max_size=4), described=st.booleans())
def test_a_round_has_the_fields_of_its_messages(binds: list[bytes], described: bool) -> None:
    rest = (describe(kind="P") if described else b"") + execute() + SYNC
    for index, message in enumerate(binds):
        found = _found(message + rest, *[one + execute() + SYNC for one in binds[:index]])
        assert found is not None
        assert found.is_described is described
        assert found.size_bytes == len(message + rest)
        shape = found.shape
        decoded = wire.decode_message(b"B", message[5:])
        assert decoded == wire.Bind("", shape.statement, shape.parameter_formats, found.values, shape.result_formats)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(message=_binds, data=st.data())
def test_a_malformed_bind_is_left_to_its_message(message: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(5, len(message) - 1))
    damaged = message[:at] + bytes([data.draw(st.integers(0, 255))]) + message[at + 1 :]
    found = _found(damaged + execute() + SYNC, message + execute() + SYNC)
    try:
        decoded = wire.decode_message(b"B", damaged[5:])
    except (ProtocolError, SqlError):
        assert found is None
        return
    assert isinstance(decoded, wire.Bind)
    if found is not None:
        assert (decoded.statement, decoded.parameters) == (found.shape.statement, found.values)
    else:
        assert decoded.portal, "only a named portal makes it no round"


def test_a_large_shape_is_not_kept() -> None:
    small, large = (bind(b"1", statement="s" * length) + execute() + SYNC for length in (10, 2 * SHAPE_BYTES_MAX))
    buffer = RoundBuffer(LIMIT)
    for chunk, kept in ((small, 10), (large, 10)):
        buffer.feed(chunk)
        found = buffer.find_round()
        assert found is not None
        assert found.values == (b"1",)
        buffer.skip(found)
        assert len(buffer._shape.statement) == kept


@pytest.mark.parametrize(
    "chunk",
    [
        b"",
        b"B",
        bind() + execute(),
        bind() + SYNC,
        bind() + execute(rows=1) + SYNC,
        bind() + execute("p") + SYNC,
        bind(portal="p") + execute() + SYNC,
        bind() + describe("p", "P") + execute() + SYNC,
        bind() + describe("", "S") + execute() + SYNC,
        (bind() + execute() + SYNC)[:-1],
        b"B\0\0\0\3" + execute() + SYNC,
        b"B\xff\xff\xff\xff" + execute() + SYNC,
        bind(bytes(LIMIT)) + execute() + SYNC,
        execute() + SYNC,
    ],
)
def test_other_messages_are_no_round(chunk: bytes) -> None:
    assert _found(chunk) is None


# Answers.

_STATEMENTS = {
    "one": "select b from t where a = $1::int",
    "two": "select a, b, $2::text from t where a <= $1::int order by a",
    "typed": "select $1::bytea, $2::bool",
    "undetermined": "select a + 1, 1.5 from t where a = $1::int",
    "insert": "insert into t(a, b) values ($1::int, $2::text)",
    "returning": "update t set b = 'y' where a = $1::int returning a, b",
    "none": "select 1",
    "empty": "",
    "begin": "begin",
    "commit": "commit",
    "show": "show application_name",
    "copy": "copy t from stdin",
}
_PARAMETERS = (b"1", b"2", b"3", b"1", b"2", b"x", b"\0\0\0\1", None)
_ends = st.sampled_from(
    (
        [execute(), SYNC],
        [describe(kind="P"), execute(), SYNC],
        [execute(), SYNC],
        [describe(kind="P"), execute(), SYNC],
        [execute(rows=1), execute(), SYNC],
        [execute()],
    )
)


@st.composite
def _groups(draw: st.DrawFn) -> list[bytes]:
    """The messages of one statement, most of them without a fault."""
    name = draw(st.sampled_from((*_STATEMENTS, "one", "two", "insert", "absent")))
    count = _STATEMENTS.get(name, "").count("$") if draw(st.integers(0, 9)) else draw(st.integers(0, 3))
    values = draw(st.lists(st.sampled_from(_PARAMETERS), min_size=count, max_size=count))
    formats, results = draw(st.sampled_from(_SENT_FORMATS)), draw(st.sampled_from(_SENT_FORMATS))
    portal = draw(st.sampled_from(("", "", "", "", "p")))
    return [bind(*values, statement=name, portal=portal, formats=formats, results=results), *draw(_ends)]


_SENT_FORMATS = ((), (), (), (0,), (1,), (0, 1), (1, 1, 0), (7,))
_other = st.sampled_from(([query("select 1")], [SYNC], [query("create table if not exists u(x int)")], [parse("select 2")]))
_sequences = st.lists(st.one_of(_groups(), _groups(), _groups(), _other), min_size=1, max_size=8)


def _answers(chunks: Sequence[bytes]) -> tuple[bytes, bool]:
    """(the answers of a new node, whether the connection was closed)."""

    async def body(connections: ClientConnections, database: LocalDatabase) -> tuple[bytes, bool]:
        client = await ChunkClient.connect(connections, database)
        await client.send_slowly(
            [query("create table t(a integer primary key, b text)"), query("insert into t values (1, 'é'), (2, null)")]
            + [parse(sql, name) + SYNC for name, sql in _STATEMENTS.items()]
        )
        answers = await client.send_chunks([*chunks, SYNC, TERMINATE])
        return answers, client.transport.is_closed

    return with_connections(body)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(groups=_sequences, places=st.lists(st.integers(0, 10_000), max_size=4))
def test_a_round_is_answered_as_its_messages_are(groups: list[list[bytes]], places: list[int]) -> None:
    messages = [message for group in groups for message in group]
    expected = _answers(messages)
    data = b"".join(messages)
    assert _answers([data]) == expected
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    assert _answers([data[begin:end] for begin, end in pairwise(edges)]) == expected


def test_messages_that_arrive_together_are_served_as_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    serve = Conversation._serve_round

    async def record(self: Conversation, found: Round, *arguments: object) -> None:
        served.append(found.shape.statement)
        await serve(self, found, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Conversation, "_serve_round", record)
    rounds = [bind(b"1", statement="one") + execute() + SYNC, bind(b"2", b"x", statement="two") + describe(kind="P") + execute() + SYNC]
    _answers([b"".join(rounds), bind(statement="copy") + execute() + SYNC])
    assert served == ["one", "two"]


def test_a_fault_within_a_round_is_the_connections_as_by_itself() -> None:
    malformed = b"B\0\0\0\x09\0\0\0\0\7" + execute() + SYNC
    with pytest.raises(ProtocolError):
        wire.decode_message(b"B", malformed[5:10])
    answers, is_closed = _answers([malformed])
    assert is_closed
    assert b"08P01" in answers
