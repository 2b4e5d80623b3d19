"""A node opens the port for clients of Redis if its settings say so, with the node's limits."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest

from triplicate.config import NodeSettings, RespSettings
from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.kv import HostedStores
from triplicate.kv.resp.resp_connections import RespLimits
from triplicate.kv.resp.resp_door import RespDoor
from triplicate.runtime import Metrics, real_host


def test_the_port_is_open_only_where_it_is_asked_for() -> None:
    async def body() -> None:
        closed = RespDoor(real_host("test"), NodeSettings(), RespSettings(), None)
        await closed.open(HostedStores(), Metrics())
        assert closed.facts() == {}
        await closed.stop()
        door = RespDoor(real_host("test"), NodeSettings(), RespSettings(serve=True), None)
        await door.open(HostedStores(), Metrics())
        host, _, port = str(door.facts()["resp"]).rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET a\r\nPING\r\n")
        assert (await reader.readline()).startswith(b"-LOADING")
        assert await reader.readline() == b"+PONG\r\n"
        await door.stop()
        assert await reader.read() == b""
        writer.close()
        assert door.facts() == {}

    asyncio.run(asyncio.wait_for(body(), 30))


def test_other_nodes_give_clients_the_published_address() -> None:
    async def body() -> None:
        for node, resp, expected in (
            ("", "", "127.0.0.1:{}"),
            ("db1.example:5432", "", "db1.example:{}"),
            ("db1:5432", "kv1:6379", "kv1:6379"),
        ):
            settings = replace(NodeSettings(), advertised_address=node), RespSettings(serve=True, advertised_address=resp)
            door = RespDoor(real_host("test"), *settings, None)
            assert door.advertised_address == ""
            await door.open(HostedStores(), Metrics())
            assert door.advertised_address == expected.format(str(door.facts()["resp"]).rpartition(":")[2])
            await door.stop()

    asyncio.run(asyncio.wait_for(body(), 30))


def test_a_port_that_is_in_use_is_named() -> None:
    async def body() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            resp = RespSettings(serve=True, port=taken.getsockname()[1])
            with pytest.raises(EnvironmentFault, match=r"choose another resp\.port"):
                await RespDoor(real_host("test"), NodeSettings(), resp, None).open(HostedStores(), Metrics())

    asyncio.run(asyncio.wait_for(body(), 30))


def test_demands_that_cannot_be_kept_are_refused_before_anything_is_opened() -> None:
    async def body() -> None:
        with pytest.raises(ConfigError, match=r"resp\.users_file"):
            RespDoor(real_host("test"), replace(NodeSettings(), authentication="scram"), RespSettings(serve=True), None)

    asyncio.run(body())


def test_the_limits_are_those_of_the_node() -> None:
    limits = RespLimits.of_settings(replace(NodeSettings(), connections=7, login_s=3.0, failed_logins=4, handshakes_per_s=5))
    assert (limits.connections, limits.login_s, limits.failed_logins, limits.handshakes_per_s) == (7, 3.0, 4, 5)
