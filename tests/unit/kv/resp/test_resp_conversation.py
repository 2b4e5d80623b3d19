"""Clients of Redis find the commands that they expect, with the replies of Redis, in both versions of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.unit.kv.resp.resp_rig import VALUE_BYTES, Stand, play, request
from tests.waiting import LIMIT_S, eventually
from triplicate.kv.core.operations import BatchResult, StoreBatch
from triplicate.kv.core.store_interface import FoundMany
from triplicate.kv.engine.replicated_store import ReplicatedStore


@pytest.mark.parametrize("protocol", [2, 3])
def test_strings_behave_as_in_redis(tmp_path: Path, protocol: int) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client(protocol) as client:
            assert await client.set("a", "1") is True
            assert await client.set("a", "2", nx=True) is None
            assert await client.set("b", "2", xx=True) is None
            assert await client.set("a", "2", get=True) == b"1"
            assert await client.set("n", "2", nx=True, get=True) is None
            assert await client.get("missing") is None
            assert await client.mget("a", "missing", "n") == [b"2", None, b"2"]
            assert await client.mset({"c": "3", "d": "4"}) is True
            assert await client.msetnx({"e": "5", "a": "5"}) is False
            assert await client.msetnx({"e": "5", "f": "6"}) is True
            assert await client.setnx("e", "6") is False
            assert await client.getset("e", "6") == b"5"
            assert await client.getdel("e") == b"6"
            assert await client.exists("a", "a", "e") == 2
            assert await client.delete("c", "d", "e") == 2
            assert await client.unlink("f") == 1
            assert [await client.incr("i"), await client.incrby("i", 41), await client.decr("i"), await client.decrby("i", 40)] == [
                1,
                42,
                41,
                1,
            ]
            assert [await client.incrbyfloat("x", "0.1"), await client.incrbyfloat("x", "0.2")] == [0.1, 0.3]
            assert [await client.append("s", "Hello"), await client.append("s", " World"), await client.strlen("s")] == [5, 11, 11]
            assert [await client.getrange("s", 0, 3), await client.getrange("s", -3, -1), await client.getrange("s", 5, 1)] == [
                b"Hell",
                b"rld",
                b"",
            ]
            for first, last, part in (
                (0, -100, b"H"),
                (1, -100, b""),
                (-100, -100, b"H"),
                (-100, -101, b""),
                (-1, -3, b""),
                (-100, 0, b"H"),
            ):
                assert await client.getrange("s", first, last) == part, (first, last)
            assert await client.getrange("missing", 0, -100) == b""
            assert await client.setrange("s", 6, "Redis") == 11
            assert await client.setrange("new", 3, "x") == 4
            assert await client.mget("s", "new") == [b"Hello Redis", b"\0\0\0x"]
            assert [await client.type("s"), await client.type("none")] == [b"string", b"none"]

    play(tmp_path, scene)


def test_keys_end_at_their_deadlines(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client:
            await client.set("a", "1", ex=100)
            assert await client.ttl("a") == 100
            assert 99_000 < await client.pttl("a") <= 100_000
            assert await client.set("a", "2", keepttl=True)
            assert await client.ttl("a") == 100
            assert await client.getex("a", persist=True) == b"2"
            assert [await client.ttl("a"), await client.ttl("missing")] == [-1, -2]
            assert await client.expireat("a", 4_000_000_000) == 1
            assert [await client.expiretime("a"), await client.pexpiretime("a")] == [4_000_000_000, 4_000_000_000_000]
            assert [
                await client.expire("a", 50, nx=True),
                await client.expire("a", 50, gt=True),
                await client.expire("a", 50, lt=True),
            ] == [0, 0, 1]
            assert [await client.execute_command("EXPIRE", "a", 40, "XX", "LT"), await client.ttl("a")] == [1, 40]
            assert [await client.persist("a"), await client.persist("a")] == [1, 0]
            assert await client.execute_command("EXPIRE", "a", 40, "XX", "LT") == 0
            assert await client.expire("a", -1) == 1
            assert await client.get("a") is None
            await client.execute_command("PSETEX", "p", 1, "x")
            await client.set("p2", "x", pxat=1)
            assert await client.get("p2") is None
            await client.execute_command("SETEX", "q", 100, "x")
            assert await client.ttl("q") == 100

    play(tmp_path, scene)


def test_errors_are_those_of_redis_and_change_nothing(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client:
            await client.set("a", "text")
            await client.set("greatest", 2**63 - 1)
            await client.set("least", -(2**63))
            await client.set("beyond", 2**63)
            for words, message in (
                (("INCR", "a"), "value is not an integer or out of range"),
                (("INCR", "beyond"), "value is not an integer or out of range"),
                (("INCRBY", "a", str(2**63)), "value is not an integer or out of range"),
                (("INCR", "greatest"), "^increment or decrement would overflow$"),
                (("INCRBY", "greatest", str(2**63 - 1)), "^increment or decrement would overflow$"),
                (("DECR", "least"), "^increment or decrement would overflow$"),
                (("INCRBYFLOAT", "a", "1"), "value is not a valid float"),
                (("APPEND", "a", "x" * VALUE_BYTES), "string exceeds maximum allowed size"),
                (("SETRANGE", "a", str(2**40), "x"), "string exceeds maximum allowed size"),
                (("SET", "a", "x" * (VALUE_BYTES + 1)), "string exceeds maximum allowed size"),
                (("SET", "", "x"), "a key has 1 to"),
                (("SET", "k" * 5000, "x"), "a key has 1 to"),
                (("HSET", "a", "b", "c"), "unsupported command 'HSET'"),
                (("WAIT", "1", "0"), "unsupported command 'WAIT'"),
                (("PUBLISH", "a", "b"), "unsupported command 'PUBLISH'"),
                (("NOPE", "a"), "unknown command 'NOPE', with args beginning with: 'a'"),
                (("SELECT", "1"), "DB index is out of range"),
            ):
                with pytest.raises(redis.ResponseError, match=message):
                    await client.execute_command(*words)
            assert await client.mget("a", "greatest", "least") == [b"text", b"%d" % (2**63 - 1), b"%d" % -(2**63)]
            assert await client.execute_command("SELECT", "0")

    play(tmp_path, scene)


def test_compare_and_set_changes_a_key_only_if_it_has_the_value(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client:
            await client.set("a", "1", ex=100)
            assert await client.execute_command("TRIPLICATE.CAS", "a", "0", "2") == 0
            assert await client.execute_command("TRIPLICATE.CAS", "missing", "", "2") == 0
            assert await client.get("a") == b"1"
            assert await client.execute_command("TRIPLICATE.CAS", "a", "1", "2") == 1
            assert [await client.get("a"), await client.ttl("a")] == [b"2", 100]

    play(tmp_path, scene)


def test_pipelined_commands_are_one_batch_of_the_log_and_answered_in_order(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client:
            await client.ping()
            sent = len(stand.log.sent)
            async with client.pipeline(transaction=False) as pipe:
                for number in range(50):
                    pipe.set("a", number)
                    pipe.get("a")
                    pipe.incr("n")
                pipe.execute_command("HSET", "a")
                pipe.incr("a")
                replies = await pipe.execute(raise_on_error=False)
            assert replies[:150] == [each for number in range(50) for each in (True, b"%d" % number, number + 1)]
            assert isinstance(replies[150], redis.ResponseError)
            assert replies[151] == 50
            assert len(stand.log.sent) - sent == 1

    play(tmp_path, scene)


def test_pipelined_commands_that_are_too_large_together_run_one_by_one(tmp_path: Path) -> None:
    """An APPEND is logged with the whole value, so the batch of all would be larger than a batch may be."""

    async def scene(stand: Stand) -> None:
        async with stand.client() as client:
            async with client.pipeline(transaction=False) as pipe:
                for number in range(1100):
                    pipe.set(f"k{number}", "x" * (VALUE_BYTES - 10))
                assert all(await pipe.execute())
            async with client.pipeline(transaction=True) as pipe:
                for number in range(1100):
                    pipe.append(f"k{number}", "y")
                with pytest.raises(redis.ResponseError, match="the changes of a batch have at most"):
                    await pipe.execute()
            async with client.pipeline(transaction=False) as pipe:
                for number in range(1100):
                    pipe.append(f"k{number}", "y")
                assert await pipe.execute() == [VALUE_BYTES - 9] * 1100

    play(tmp_path, scene)


def test_requests_that_arrive_while_a_change_is_at_the_log_are_answered_after_it(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        client = await stand.raw()
        assert await client.ask(b"SET a 1\r\n") == b"+OK"
        stand.log.held = True
        client.writer.write(b"SET a 2\r\n")
        await stand.log.has_sent(1)
        client.writer.write(b"GET a\r\nPING\r\n")
        await client.writer.drain()
        await eventually(lambda: stand.unserved_bytes() > 0)
        stand.log.held = False
        stand.log.release()
        async with asyncio.timeout(LIMIT_S):
            assert [(await client.reader.readline()).strip() for _ in range(4)] == [b"+OK", b"$1", b"2", b"+PONG"]
        client.close()

    play(tmp_path, scene)


def test_scans_see_every_key_once_and_go_on_over_any_connection(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client, stand.client() as other:
            await client.mset({f"user:{number}": "x" for number in range(25)} | {"other": "y"})
            cursor, first = await client.scan(0, match="user:*", count=10)
            assert cursor
            assert len(first) == 10
            found = list(first)
            while cursor:
                cursor, more = await other.scan(cursor, match="user:*", count=10)
                found += more
            assert sorted(found) == sorted(b"user:%d" % number for number in range(25))
            assert len(await client.keys("user:1?")) == 10
            assert (await client.scan(0, _type="HASH", count=100))[1] == []
            assert [await client.dbsize(), await client.randomkey() is not None] == [26, True]
            with pytest.raises(redis.ResponseError, match="invalid cursor"):
                await client.scan(12345)

    play(tmp_path, scene)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_learns_of_the_server_and_of_itself(tmp_path: Path, protocol: int) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client(protocol, client_name="tester") as client:
            assert await client.ping() is True
            assert await client.echo("x") == b"x"
            assert await client.client_getname() in (b"tester", "tester")
            assert (await client.client_list())[0]["name"] == "tester"
            facts = await client.info()
            assert (facts["role"], facts["store"], facts["db0"]) == ("master", "shop", {"keys": 0})
            assert "keyspace" not in await client.info("server")
            assert (await client.role())[0] in (b"master", "master")
            assert abs((await client.time())[0] - 1_700_000_000) < 2**31
            assert await client.command_count() == len(await client.command())
            assert await client.execute_command("RESET") in (b"RESET", "RESET")
        raw = await stand.raw()
        assert await raw.ask(b"COMMAND DOCS get nope\r\n") == b"*2"
        raw.close()

    play(tmp_path, scene)


def test_a_follower_refuses_changes_and_serves_reads_of_weaker_levels(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client:
            await client.set("a", "1")
            position = await client.execute_command("TRIPLICATE.POSITION")
            await stand.follow()
            for words in (("SET", "a", "2"), ("GET", "a"), ("INCRBYFLOAT", "a", "1"), ("WATCH", "a")):
                with pytest.raises(redis.exceptions.ReadOnlyError, match="this node follows"):
                    await client.execute_command(*words)
            for level in ("any", "session"):
                assert await client.execute_command("TRIPLICATE.LEVEL", level) in (b"OK", "OK", True)
                assert [await client.get("a"), await client.mget("a")] == [b"1", [b"1"]]
                assert await client.keys("*") == [b"a"]
            assert await client.execute_command("TRIPLICATE.POSITION", position + 1) == position + 1
            await client.execute_command("TRIPLICATE.LEVEL", "session", "WAIT", 10)
            with pytest.raises(redis.ResponseError, match=r"STALE.*behind the position of the session"):
                await client.get("a")
            await client.execute_command("TRIPLICATE.LEVEL", "bounded", "0.5", "WAIT", 10)
            assert await client.execute_command("TRIPLICATE.LEVEL") in (b"bounded 0.5", "bounded 0.5")
            with pytest.raises(redis.ResponseError, match="STALE"):
                await client.get("a")
            assert (await client.role())[0] in (b"slave", "slave")

    play(tmp_path, scene)


def test_an_unknown_outcome_is_answered_as_unknown(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        raw = await stand.raw()
        assert await raw.ask(request(b"SET", b"a", b"1")) == b"+OK"
        stand.log.held = True
        raw.writer.write(request(b"SET", b"a", b"2"))
        await stand.log.has_sent(1)
        stand.stores.leading["shop"].cancel()
        assert (await raw.ask(b"")).startswith(b"-UNKNOWN the change may have happened or not")
        raw.close()

    play(tmp_path, scene)


def test_what_is_no_request_ends_the_connection_with_the_reason(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        for data, reply in (
            (b"*1\r\n$99999999999\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
            (request(b"PING") + b"*1\r\n:1\r\n", b"+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n"),
            (b"*99999999\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
            (b"QUIT\r\nPING\r\n", b"+OK\r\n"),
        ):
            raw = await stand.raw()
            raw.writer.write(data)
            assert await raw.rest() == reply
            raw.close()
        raw = await stand.raw()
        raw.writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + request(b"SET", b"a", b"1"))
        assert b"unknown command 'POST'" in await raw.rest()
        raw.close()
        assert (await stand.store.get(b"a")).record is None

    play(tmp_path, scene)


def test_whatever_a_command_meets_fails_the_command_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get_many, submit = ReplicatedStore.get_many, ReplicatedStore.submit

    async def read(self: ReplicatedStore, keys: Sequence[bytes], *arguments: Any) -> FoundMany:
        if b"defect" in keys:
            raise LookupError("an error that nobody expects")
        return await get_many(self, keys, *arguments)

    def change(self: ReplicatedStore, batch: StoreBatch) -> asyncio.Future[BatchResult]:
        if any(operation.key == b"defect" for operation in batch.operations):
            raise LookupError("an error that nobody expects")
        return submit(self, batch)

    monkeypatch.setattr(ReplicatedStore, "get_many", read)
    monkeypatch.setattr(ReplicatedStore, "submit", change)

    async def scene(stand: Stand) -> None:
        async with stand.client(2) as client:
            await client.set("a", "1")
            for command in (("MGET", "a", "defect"), ("SET", "defect", "1"), ("INCRBY", "defect", "1"), ("WATCH", "defect")):
                with pytest.raises(redis.ResponseError, match="internal error: LookupError"):
                    await client.execute_command(*command)
            pipeline = client.pipeline(transaction=True)
            pipeline.set("defect", "1")
            with pytest.raises(redis.ResponseError, match="internal error: LookupError"):
                await pipeline.execute()
            plain = client.pipeline(transaction=False)
            plain.set("b", "1").set("defect", "1").get("a")
            replies = await plain.execute(raise_on_error=False)
            assert all(isinstance(reply, redis.ResponseError) for reply in replies)
            assert await client.mget("a", "b") == [b"1", None]

    play(tmp_path, scene)
