"""The answers to messages do not depend on how the bytes are cut into chunks, nor on which statements must wait."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.sql.pg.chunk_rig import ChunkClient, letters, settle, with_connections
from tests.unit.sql.pg.local_engine import LocalDatabase, LocalSession
from tests.unit.sql.pg.raw_client import SYNC, bind, describe, execute, parse, query
from triplicate.runtime import TasklessFuture
from triplicate.sql.engine.cursors import RowsCursor
from triplicate.sql.pg.protocol.client_connections import ClientConnections
from triplicate.sql.pg.protocol.message_stream import IN_BUFFER_BYTES
from triplicate.sql.pg.protocol.protocol_state import TURN_COST

TERMINATE = b"X\0\0\0\4"
FLUSH = b"H\0\0\0\4"
COPY_DATA = b"d\0\0\0\7abc"
CALL = b"F\0\0\0\4"

_STATEMENTS = (
    "select a, b from t order by a",
    "select 1",
    "insert into t(b) values ('x')",
    "insert into t(a) values (1)",
    "update t set b = 'y' where a = 1 returning a",
    "select * from nowhere",
    "begin",
    "commit",
    "rollback",
    "savepoint s",
    "set application_name = 'x'",
    "show application_name",
    "",
)
_NAMES = ("", "s", "p")

_statement = st.sampled_from(_STATEMENTS)
_extended = st.one_of(
    st.builds(parse, _statement, st.sampled_from(_NAMES)),
    st.builds(lambda statement, portal: bind(statement=statement, portal=portal), st.sampled_from(_NAMES), st.sampled_from(_NAMES)),
    st.builds(describe, st.sampled_from(_NAMES), st.sampled_from("SP")),
    st.builds(execute, st.sampled_from(_NAMES), st.sampled_from((0, 1))),
    st.just(b"C\0\0\0\6S\0"),
    st.just(FLUSH),
    st.just(COPY_DATA),
    st.just(bind(b"1")),
)
_useful = st.builds(lambda sql: [parse(sql), bind(), describe("", "P"), execute()], _statement)
"""The messages that clients send for a statement."""
_round = st.one_of(
    st.lists(_extended, max_size=6).map(lambda messages: [*messages, SYNC]),
    st.lists(_useful, min_size=1, max_size=3).map(lambda groups: [*[message for group in groups for message in group], SYNC]),
    st.lists(_statement, min_size=1, max_size=3).map(lambda texts: [query(";".join(texts))]),
    st.just([CALL]),
)
"""Messages that are answered by exactly one ReadyForQuery."""
_rounds = st.lists(_round, min_size=1, max_size=6)


class WaitingSession(LocalSession):
    """Each of its statements waits before it runs: first for a future that needs no task, then for turns of the loop, and so on."""

    turns: Sequence[int] = ()

    async def start(self, *arguments: Any) -> RowsCursor:
        for wait in range(self.turns[self.started % len(self.turns)] if self.turns else 0):
            if wait % 2:
                await asyncio.sleep(0)
            else:
                loop = asyncio.get_running_loop()
                outcome: TasklessFuture[None] = TasklessFuture(loop=loop)
                loop.call_soon(outcome.set_result, None)
                await outcome
        return await super().start(*arguments)


def _answers(chunks: Sequence[bytes], *, slowly: bool, waits: Sequence[int] = ()) -> tuple[bytes, bool]:
    """(the answers of a new node, whether the connection was closed)."""

    async def body(connections: ClientConnections, database: LocalDatabase) -> tuple[bytes, bool]:
        client = await ChunkClient.connect(connections, database)
        database.sessions[-1].__class__ = type("Waiting", (WaitingSession,), {"turns": tuple(waits)})
        await client.send_slowly([query("create table t(a integer primary key, b text)")])
        answers = await (client.send_slowly(chunks) if slowly else client.send_chunks(chunks))
        return answers, client.transport.is_closed

    return with_connections(body)


def _cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]


@settings(max_examples=examples(60), deadline=None)
@given(rounds=_rounds, places=st.lists(st.integers(0, 10_000), max_size=12), waits=st.lists(st.integers(0, 3), max_size=4))
def test_chunks_and_waits_change_no_answer(rounds: list[list[bytes]], places: list[int], waits: list[int]) -> None:
    messages = [message for one in rounds for message in one]
    expected = _answers(messages, slowly=True)
    data = b"".join(messages)
    assert _answers(_cut(data, places), slowly=False, waits=waits) == expected
    assert _answers(_cut(data, places), slowly=True, waits=waits) == expected


@settings(max_examples=40, deadline=None)
@given(rounds=_rounds, waits=st.lists(st.integers(0, 3), max_size=4))
def test_each_sync_and_query_is_answered_by_one_ready_for_query(rounds: list[list[bytes]], waits: list[int]) -> None:
    answers, _ = _answers([b"".join(message for one in rounds for message in one)], slowly=False, waits=waits)
    found = letters(answers)
    assert found.count("Z") == len(rounds)
    assert found.endswith("Z")
    for one, answered in zip(rounds, found.split("Z"), strict=False):
        if one[-1] == SYNC and "E" in answered[:-1]:
            # After an error only Sync is answered: with the changed settings, and with an error if its own commit fails.
            assert answered[answered.index("E") :].strip("ES") == ""


@settings(max_examples=40, deadline=None)
@given(before=_rounds, after=_rounds, places=st.lists(st.integers(0, 10_000), max_size=6))
def test_nothing_is_served_after_terminate(before: list[list[bytes]], after: list[list[bytes]], places: list[int]) -> None:
    first = b"".join(message for one in before for message in one)
    expected, was_closed = _answers([first], slowly=False)
    assert not was_closed
    rest = b"".join(message for one in after for message in one)
    assert _answers(_cut(first + TERMINATE + rest, places), slowly=False) == (expected, True)


def test_the_answers_to_a_chunk_are_written_together() -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        client.stream.data_received(b"".join((parse("select 1"), bind(), execute(), SYNC, bind(), execute(), SYNC)))
        assert [letters(write) for write in client.transport.writes] == ["12DCZ2DCZ"]

    with_connections(body)


def test_an_answer_is_sent_before_the_next_statement_waits() -> None:
    """The client may have sent the second statement without the answer to the first, but it waits for that answer."""

    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        go_on = asyncio.Event()
        session = database.sessions[-1]
        start = session.start

        async def wait(*arguments: Any) -> RowsCursor:
            if session.started == 1:
                await go_on.wait()
            return await start(*arguments)

        session.start = wait  # type: ignore[assignment, method-assign]
        client.stream.data_received(b"".join((query("select 1"), parse("select 2"), bind(), execute(), SYNC, query("select 3"))))
        assert [letters(write) for write in client.transport.writes] == ["TDCZ12"]
        await settle()
        client.stream.data_received(query("select 4"))
        assert len(client.transport.writes) == 1
        go_on.set()
        await settle()
        assert [letters(write) for write in client.transport.writes[1:]] == ["DCZTDCZTDCZ"]

    with_connections(body)


def test_a_statement_that_waits_without_a_task_has_ended_before_its_conversation() -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        ended: list[bool] = []

        async def wait(*_: Any) -> RowsCursor:
            outcome: TasklessFuture[RowsCursor] = TasklessFuture(loop=asyncio.get_running_loop())
            try:
                return await outcome
            finally:
                ended.append(True)

        database.sessions[-1].start = wait  # type: ignore[assignment, method-assign]
        client.stream.data_received(query("select 1"))
        await settle()
        assert ended == []
        await connections.aclose()
        assert ended == [True]

    with_connections(body)


@pytest.mark.parametrize("message", [SYNC, COPY_DATA, query("select 1"), FLUSH])
def test_a_chunk_of_many_messages_leaves_turns_to_other_connections(message: bytes) -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        busy, other = [await ChunkClient.connect(connections, database) for _ in range(2)]
        busy.stream.data_received(message * 20_000)
        for turn in range(1, 6):
            other.stream.data_received(query("select 1"))
            assert letters(other.answers()) == "TDCZ"
            assert letters(b"".join(busy.transport.writes)).count("Z") <= turn * TURN_COST
            assert busy.database.sessions[0].started <= turn * TURN_COST
            await asyncio.sleep(0)
        while busy.stream.peek() is not None:
            await asyncio.sleep(0)
        assert letters(busy.answers()).count("Z") == (20_000 if message in (SYNC, query("select 1")) else 0)

    with_connections(body)


def test_tiny_data_of_a_copy_leave_turns_to_other_connections_and_terminate_ends_it() -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        busy, other = [await ChunkClient.connect(connections, database) for _ in range(2)]
        await busy.send_chunks([query("create table c(a text)")])
        await busy.send_chunks([query("copy c from stdin")])
        busy.stream.data_received(b"d\0\0\0\4" * 20_000 + TERMINATE + query("select 1"))
        for _ in range(20):
            other.stream.data_received(query("select 1"))
            assert letters(other.answers()) == "TDCZ"
            assert not busy.transport.is_closed
            await asyncio.sleep(0)
        await busy.settle()
        while not busy.transport.is_closed:
            await asyncio.sleep(0)
        assert "D" not in letters(busy.answers())

    with_connections(body)


def test_a_client_that_sends_while_its_statement_waits_is_not_read_without_limit() -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        go_on = asyncio.Event()
        session = database.sessions[-1]
        start = session.start

        async def wait(*arguments: Any) -> RowsCursor:
            await go_on.wait()
            return await start(*arguments)

        session.start = wait  # type: ignore[assignment, method-assign]
        one = query("select 1")
        sent = 0
        while client.transport.reads:
            client.stream.data_received(one * 1000)
            await settle()
            sent += 1000
        assert IN_BUFFER_BYTES < sent * len(one) < IN_BUFFER_BYTES + 2000 * len(one)
        go_on.set()
        while not client.transport.reads:
            await asyncio.sleep(0)
        for _ in range(50):
            await settle()
        assert letters(client.answers()).count("Z") == sent

    with_connections(body)


def test_a_large_message_is_read_to_its_end_whatever_its_size() -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        message = query("; ".join([f"select length('{'x' * 1_000_000}')"] * 3))
        for at in range(0, len(message), 65_536):
            assert client.transport.reads
            client.stream.data_received(message[at : at + 65_536])
        await settle()
        assert letters(client.answers()) == "TDCTDCTDCZ"

    with_connections(body)


def test_a_client_that_does_not_read_is_not_served_and_its_answers_are_bounded() -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        client.stream.pause_writing()
        client.transport.unsent = 100_000
        before = database.sessions[-1].started
        for _ in range(20):
            client.stream.data_received(query("select 1") * 10)
            await settle()
        assert database.sessions[-1].started <= before + 1
        client.transport.unsent = 0
        client.stream.resume_writing()
        for _ in range(20):
            await settle()
        assert letters(client.answers()).count("Z") == 200

    with_connections(body)


def test_a_large_result_is_written_in_parts() -> None:
    series = "with recursive s(v) as (select 1 union all select v + 1 from s where v < 20000) select v, 'xxxxxxxxxxxxxxxxxxxx' from s"

    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        client.stream.data_received(query(series))
        await settle()
        assert max(map(len, client.transport.writes)) < 100_000
        assert letters(client.answers()).count("D") == 20_000

    with_connections(body)


def test_a_malformed_message_behind_a_waiting_statement_is_answered_in_its_turn() -> None:
    async def body(connections: ClientConnections, database: LocalDatabase) -> None:
        client = await ChunkClient.connect(connections, database)
        database.sessions[-1].__class__ = type("Waiting", (WaitingSession,), {"turns": (5,)})
        answers = await client.send_chunks([query("select 1"), b"Q" + struct.pack(">i", 2) + b"garbage" * 60_000])
        assert letters(answers) == "TDCZE"
        assert b"08P01" in answers
        assert client.transport.is_closed

    with_connections(body)
