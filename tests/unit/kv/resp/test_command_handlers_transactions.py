"""MULTI and EXEC are one batch, and WATCH lets them do nothing after a change."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.unit.kv.resp.resp_rig import Stand, play, request


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_transaction_is_one_batch(tmp_path: Path, protocol: int) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client(protocol) as client:
            await client.ping()
            sent = len(stand.log.sent)
            async with client.pipeline(transaction=True) as pipe:
                pipe.set("a", "1").incr("a").get("a").ping().set("t", "x").incr("t").mget("a", "t")
                replies = await pipe.execute(raise_on_error=False)
            assert replies[:5] == [True, 2, b"2", True, True]
            assert isinstance(replies[5], redis.ResponseError)
            assert replies[6] == [b"2", b"x"]
            assert len(stand.log.sent) - sent == 1

    play(tmp_path, scene)


def test_a_change_of_a_watched_key_lets_exec_do_nothing(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client, stand.client() as other:
            await client.set("a", "1")
            for key, is_changed in (("a", True), ("missing", True), ("unrelated", False)):
                async with client.pipeline(transaction=True) as pipe:
                    await pipe.watch("a", "missing")
                    await other.set(key, "2")
                    pipe.multi()
                    pipe.set("result", key)
                    if is_changed:
                        with pytest.raises(redis.WatchError):
                            await pipe.execute()
                    else:
                        assert await pipe.execute() == [True]
            assert await client.get("result") == b"unrelated"
            async with client.pipeline(transaction=True) as pipe:
                await pipe.watch("a")
                await other.set("a", "3")
                await pipe.unwatch()
                pipe.multi()
                pipe.get("a")
                assert await pipe.execute() == [b"3"]

    play(tmp_path, scene)


def test_a_refused_command_lets_exec_discard_the_others(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        raw = await stand.raw()
        for refused in (b"HSET a b", b"GET", b"KEYS *", b"INCRBYFLOAT a 1", b"MSETNX a 1", b"SUBSCRIBE a", b"AUTH a b"):
            assert await raw.ask(b"MULTI\r\n") == b"+OK"
            assert await raw.ask(b"SET a 1\r\n") == b"+QUEUED"
            assert (await raw.ask(refused + b"\r\n")).startswith(b"-ERR")
            assert (await raw.ask(b"EXEC\r\n")).startswith(b"-EXECABORT")
        assert (await raw.ask(b"EXEC\r\n")).startswith(b"-ERR EXEC without MULTI")
        assert (await raw.ask(b"DISCARD\r\n")).startswith(b"-ERR DISCARD without MULTI")
        assert await raw.ask(b"MULTI\r\n") == b"+OK"
        assert (await raw.ask(b"MULTI\r\n")).startswith(b"-ERR MULTI calls can not be nested")
        assert (await raw.ask(b"WATCH a\r\n")).startswith(b"-ERR WATCH inside MULTI")
        assert await raw.ask(b"DISCARD\r\n") == b"+OK"
        assert await raw.ask(b"GET a\r\n") == b"$-1"
        raw.close()

    play(tmp_path, scene)


def test_a_transaction_has_limits(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        raw = await stand.raw()
        assert await raw.ask(b"MULTI\r\n") == b"+OK"
        many = request(b"MGET", *[b"k"] * 4000)
        assert [await raw.ask(many), await raw.ask(many)] == [b"+QUEUED"] * 2
        assert (await raw.ask(many)).startswith(b"-ERR a transaction has at most 10000 keys")
        assert (await raw.ask(b"EXEC\r\n")).startswith(b"-EXECABORT")
        raw.close()

    play(tmp_path, scene)


def test_a_transaction_without_commands_on_keys_heeds_the_watched_keys(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        raw = await stand.raw()
        async with stand.client() as other:
            for is_changed in (False, True):
                for commands, replies in (((), b"*0"), ((b"PING\r\n",), b"*1")):
                    assert await raw.ask(b"WATCH a\r\n") == b"+OK"
                    if is_changed:
                        await other.incr("a")
                    assert await raw.ask(b"MULTI\r\n") == b"+OK"
                    for command in commands:
                        assert await raw.ask(command) == b"+QUEUED"
                    assert await raw.ask(b"EXEC\r\n") == (b"*-1" if is_changed else replies)
                    if commands and not is_changed:
                        assert (await raw.reader.readline()).rstrip() == b"+PONG"
            async with other.pipeline(transaction=True) as pipe:
                await pipe.watch("a")
                pipe.multi()
                assert await pipe.execute() == []
        raw.close()

    play(tmp_path, scene)


def test_the_texts_of_a_transaction_are_limited_like_its_values(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        raw = await stand.raw()
        assert await raw.ask(b"MULTI\r\n") == b"+OK"
        echo = request(b"ECHO", b"." * 1_000_000)
        replies = [await raw.ask(echo) for _ in range(5)]
        assert replies[:3] == [b"+QUEUED"] * 3
        assert replies[4].startswith(b"-ERR a transaction has at most 10000 keys and")
        assert (await raw.ask(b"EXEC\r\n")).startswith(b"-EXECABORT")
        raw.close()

    play(tmp_path, scene)
