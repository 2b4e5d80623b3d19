"""Subscribers are notified of each change of the keys that they name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.kv.resp.resp_rig import Stand, play, request
from triplicate.errors import PlaceLost, StoreUnavailable


@pytest.mark.parametrize("protocol", [2, 3])
def test_changes_are_sent_to_subscribers_of_channels_and_patterns(tmp_path: Path, protocol: int) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client(protocol) as client, stand.client() as writer, client.pubsub(ignore_subscribe_messages=True) as pubsub:
            await pubsub.subscribe("__keyspace@0__:user:1")
            await pubsub.psubscribe("__keyspace@0__:user:*", "__keyevent@0__:del")
            for _ in range(3):
                assert await pubsub.get_message(timeout=5) is None
            await writer.set("other", "x")
            await writer.set("user:1", "x")
            await writer.expire("user:1", 100)
            await writer.persist("user:1")
            await writer.delete("user:1", "other")
            found: list[tuple[str, str, str]] = []
            while len(found) < 10:
                message = await pubsub.get_message(timeout=5)
                assert message is not None, found
                found.append((message["type"], message["channel"].decode(), message["data"].decode()))
            own, deleted = "__keyspace@0__:user:1", "__keyevent@0__:del"
            events = ["set", "expire", "persist", "del"]
            assert [data for kind, channel, data in found if kind == "message"] == events
            assert [data for kind, channel, data in found if (kind, channel) == ("pmessage", own)] == events
            assert sorted(data for kind, channel, data in found if channel == deleted) == ["other", "user:1"]

    play(tmp_path, scene)


def test_a_client_of_version_2_with_subscriptions_may_only_subscribe(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        raw = await stand.raw()
        assert await raw.ask(request(b"SUBSCRIBE", b"__keyspace@0__:a")) == b"*3"
        for _ in range(5):
            await raw.reader.readline()
        assert b"Can't execute 'get'" in await raw.ask(request(b"GET", b"a"))
        assert await raw.ask(request(b"PING")) == b"*2"
        for _ in range(4):
            await raw.reader.readline()
        assert await raw.ask(request(b"UNSUBSCRIBE")) == b"*3"
        for _ in range(5):
            await raw.reader.readline()
        assert await raw.ask(request(b"GET", b"a")) == b"$-1"
        assert (await raw.ask(request(b"SUBSCRIBE", b"news"))).startswith(b"-ERR this server has the channels __keyspace@0__:KEY")
        raw.close()

    play(tmp_path, scene)


def test_a_subscription_for_more_keys_goes_on_without_a_gap(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client, stand.client() as writer, client.pubsub(ignore_subscribe_messages=True) as pubsub:
            await pubsub.subscribe("__keyspace@0__:a")
            seen = 0
            for number in range(20):
                await writer.set("a", number)
                await pubsub.subscribe(f"__keyspace@0__:{chr(98 + number)}")
            while seen < 20:
                message = await pubsub.get_message(timeout=5)
                seen += message is not None and message["channel"] == b"__keyspace@0__:a"
            assert await pubsub.get_message(timeout=0.05) is None

    play(tmp_path, scene)


def test_a_subscription_that_fails_changes_nothing_for_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: object) -> None:
        raise StoreUnavailable("the copy is replaced")

    async def scene(stand: Stand) -> None:
        raw = await stand.raw()
        with monkeypatch.context() as failure:
            failure.setattr(stand.store, "watch", failing)
            assert (await raw.ask(request(b"SUBSCRIBE", b"__keyspace@0__:a"))).startswith(b"-TRYAGAIN")
            assert await raw.ask(request(b"GET", b"a")) == b"$-1"
        assert await raw.ask(request(b"SUBSCRIBE", b"__keyspace@0__:a")) == b"*3"
        for _ in range(5):
            await raw.reader.readline()
        with monkeypatch.context() as failure:
            failure.setattr(stand.store, "watch", failing)
            assert (await raw.ask(request(b"SUBSCRIBE", b"__keyspace@0__:b"))).startswith(b"-TRYAGAIN")
        await stand.store.put(b"b", b"1")
        await stand.store.put(b"a", b"1")
        message = [await asyncio.wait_for(raw.reader.readline(), 5) for _ in range(7)]
        assert message[2:5:2] == [b"message\r\n", b"__keyspace@0__:a\r\n"]
        raw.close()

    play(tmp_path, scene)


def test_a_subscriber_that_lost_messages_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Losing:
        position = 0

        def __aiter__(self) -> Losing:
            return self

        async def __anext__(self) -> None:
            raise PlaceLost("the changes after position 0 are no longer kept", 7)

        async def aclose(self) -> None:
            pass

    async def scene(stand: Stand) -> None:
        async def watch(prefix: bytes = b"", position: int | None = None) -> Losing:
            return Losing()

        monkeypatch.setattr(stand.store, "watch", watch)
        raw = await stand.raw()
        raw.writer.write(request(b"SUBSCRIBE", b"__keyspace@0__:a"))
        assert b"-ERR notifications were lost, so the connection ends" in await raw.rest()
        raw.close()

    play(tmp_path, scene)
