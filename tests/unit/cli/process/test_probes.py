"""`/health` and `/ready` of a server process, from before its start until its end."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from triplicate.cli.process.probes import ProcessState, Readiness, ServedProcess, bookie_readiness, node_readiness
from triplicate.cli.process.serving import metrics_url, serve
from triplicate.config import ProcessSettings
from triplicate.errors import EnvironmentFault
from triplicate.kv import HostedStores
from triplicate.replica import Role
from triplicate.runtime import Host, Metrics, real_host
from triplicate.sql import DatabaseNode


def fetch(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@dataclass
class Server:
    """A server whose start, end and state the test decides."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_start: asyncio.Event = field(default_factory=asyncio.Event)
    may_stop: asyncio.Event = field(default_factory=asyncio.Event)
    failed: asyncio.Event = field(default_factory=asyncio.Event)
    problems: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    url: str = ""

    async def start(self, host: Host, metrics: Metrics) -> ServedProcess:
        self.begun.set()
        await self.may_start.wait()

        async def failed() -> BaseException:
            await self.failed.wait()
            return OSError("the disk is gone")

        async def stop() -> None:
            await self.may_stop.wait()

        return ServedProcess({"name": "x"}, stop, failed, lambda: self.problems, lambda: Readiness(self.reasons, {"writable": True}))

    async def probe(self, path: str) -> tuple[int, Any]:
        return await asyncio.to_thread(fetch, self.url + path)

    async def until(self, path: str, status: int) -> Any:
        async with asyncio.timeout(30):
            while True:
                found, facts = await self.probe(path)
                if found == status:
                    return facts
                await asyncio.sleep(0.01)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_process_is_healthy_and_not_ready_until_it_serves_and_while_it_ends(address: str) -> None:
    async def body() -> None:
        server, port = Server(), free_port()
        server.url = metrics_url(address, port).removesuffix("/metrics")
        settings = ProcessSettings(metrics_host=address, metrics_port=port)
        announced: list[dict[str, object]] = []
        task = asyncio.create_task(serve("x", real_host("x"), settings, server.start, announced.append))
        await server.begun.wait()
        status, facts = await server.probe("/ready")
        assert (status, facts["ready"], facts["reasons"]) == (503, False, ["starting"])
        assert (await server.probe("/health"))[0] == 200
        assert announced == []
        server.may_start.set()
        facts = await server.until("/ready", 200)
        assert facts == {"ready": True, "process": "x", "reasons": [], "writable": True}
        assert announced == [{"name": "x", "metrics": f"{server.url}/metrics"}]
        server.failed.set()
        facts = await server.until("/ready", 503)
        assert facts["reasons"] == ["ending"]
        assert (await server.probe("/health"))[0] == 200
        server.may_stop.set()
        with pytest.raises(EnvironmentFault, match="the disk is gone"):
            await task

    asyncio.run(body())


def test_a_metrics_port_in_use_is_refused_before_the_server_starts() -> None:
    async def body() -> None:
        server = Server()
        taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = taken.sockets[0].getsockname()[1]
        with pytest.raises(EnvironmentFault, match=rf"127.0.0.1:{port} cannot be opened for the metrics \(held by process {os.getpid()} "):
            await serve("x", real_host("x"), ProcessSettings(metrics_port=port), server.start, lambda facts: None)
        assert not server.begun.is_set()
        taken.close()

    asyncio.run(body())


class HandClock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def state_of(problems: Sequence[str] = (), reasons: Sequence[str] = ()) -> tuple[ProcessState, HandClock]:
    async def nothing() -> Any:
        raise AssertionError("not called")

    clock = HandClock()
    state = ProcessState("x", cast("Any", clock), lambda: 0.25)
    state.serving = ServedProcess({}, nothing, nothing, lambda: problems, lambda: Readiness(reasons))
    return state, clock


def test_a_loop_that_has_ended_is_reported_and_makes_the_process_unhealthy() -> None:
    state, _ = state_of(problems=["registration has ended"])
    answer = state.health()
    assert not answer.well
    assert answer.facts["reasons"] == ["registration has ended"]
    assert answer.facts["loop_delay_s"] == 0.25


def node_of(**roles: Role) -> DatabaseNode:
    """A node that hosts databases in these roles."""
    leader = SimpleNamespace(node_id="node-2")
    hosted = {name: SimpleNamespace(role=role, leader=leader, machine=SimpleNamespace(position=7)) for name, role in roles.items()}
    return cast("DatabaseNode", SimpleNamespace(databases=SimpleNamespace(hosted=hosted), failure=None, node_id="node-1"))


def test_a_node_is_ready_when_each_database_is_led_or_followed() -> None:
    found = node_readiness(node_of(shop=Role.LEADER, stock=Role.FOLLOWER), HostedStores())
    assert found.reasons == []
    assert found.facts == {
        "node": "node-1",
        "databases": {
            "shop": {"role": "leader", "position": 7, "leader": "node-2"},
            "stock": {"role": "follower", "position": 7, "leader": "node-2"},
        },
    }
    assert node_readiness(node_of(), HostedStores()).reasons == []


@pytest.mark.parametrize("role", [Role.STARTING, Role.CANDIDATE, Role.DIVERGED, Role.STOPPED])
def test_a_node_is_not_ready_with_a_database_that_is_neither(role: Role) -> None:
    found = node_readiness(node_of(shop=Role.LEADER, stock=role), HostedStores())
    assert found.reasons == [f"database stock is {role.value}"]


def bookie_of(*, read_only: bool, ended: Sequence[str] = ()) -> Any:
    return SimpleNamespace(bookie_id="b", read_only=read_only, registered=True, ended_loops=list(ended))


def test_a_read_only_bookie_is_ready_and_says_so() -> None:
    found = bookie_readiness(bookie_of(read_only=True))
    assert found.reasons == []
    assert found.facts == {"bookie": "b", "writable": False, "registered": True}
    assert bookie_readiness(bookie_of(read_only=False)).facts["writable"] is True
    assert bookie_readiness(bookie_of(read_only=False, ended=["disk guard"])).reasons == ["disk guard has ended"]


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("127.0.0.1", "127.0.0.1:80"),
        ("10.1.2.3", "10.1.2.3:80"),
        ("0.0.0.0", "127.0.0.1:80"),
        ("::", "[::1]:80"),
        ("fd00::1", "[fd00::1]:80"),
    ],
)
def test_the_printed_address_can_be_opened_on_this_machine(address: str, place: str) -> None:
    assert metrics_url(address, 80) == f"http://{place}/metrics"
