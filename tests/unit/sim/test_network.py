"""Simulated TCP: order, chunks, back-pressure, closing, breaking, partitions, hosts that are down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from triplicate.errors import ArgumentError
from triplicate.sim.host import SimulatedHost, World


class Collector(asyncio.Protocol):
    """Keeps everything that happens to it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.chunks: list[bytes] = []
        self.events: list[str] = []
        self.error: Exception | None = None

    @property
    def data(self) -> bytes:
        return b"".join(self.chunks)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        assert data
        self.chunks.append(data)

    def eof_received(self) -> bool | None:
        self.events.append("eof")
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")
        self.error = exc

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")


class Pair:
    """A client on node a and a server on node b, connected."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.a = world.start_host("a")
        self.b = world.start_host("b")
        self.servers: list[Collector] = []
        self.client = Collector()
        self.transport: asyncio.Transport

    def accept(self) -> Collector:
        self.servers.append(Collector())
        return self.servers[-1]

    async def open(self) -> Pair:
        await self.b.call(self.b.port.network.listen(self.accept, "0.0.0.0", 3181))
        return await self.again()

    async def again(self) -> Pair:
        self.transport, _ = await self.a.call(self.a.port.network.connect(lambda: self.client, "b", 3181))
        return self

    @property
    def server(self) -> Collector:
        return self.servers[-1]


def in_world(body: Callable[[World], Awaitable[None]], seed: int = 1) -> World:
    world = World(seed)

    async def main() -> None:
        await body(world)

    world.run(main())
    assert world.loop.failures == []
    world.close()
    return world


def test_bytes_arrive_in_order_and_in_chunks_cut_at_random() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        sent = bytearray()
        for number in range(400):
            data = number.to_bytes(4, "big") * (number % 7 + 1)
            sent += data
            pair.transport.write(data)
            await asyncio.sleep(0.0002)
        await asyncio.sleep(1.0)
        assert pair.server.data == bytes(sent)
        assert any(len(chunk) % 4 for chunk in pair.server.chunks), "no chunk was cut inside a word"

    in_world(body)


def test_addresses_are_node_names() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        assert pair.transport.get_extra_info("peername") == ("b", 3181)
        assert pair.server.transport is not None
        assert pair.server.transport.get_extra_info("sockname") == ("b", 3181)
        assert pair.server.transport.get_extra_info("peername")[0] == "a"
        assert pair.transport.get_extra_info("socket") is None

    in_world(body)


def test_port_zero_takes_a_free_port_and_a_used_one_is_refused() -> None:
    async def body(world: World) -> None:
        host = world.start_host("b")
        first = await host.call(host.port.network.listen(Collector, "", 0))
        second = await host.call(host.port.network.listen(Collector, "", 0))
        assert first.address != second.address
        with pytest.raises(OSError, match="in use"):
            await host.call(host.port.network.listen(Collector, "", first.address[1]))
        await host.call(first.close())
        again = await host.call(host.port.network.listen(Collector, "", first.address[1]))
        assert again.address == first.address

    in_world(body)


def test_nodes_of_one_machine_are_reached_by_its_name_and_have_ports_of_their_own() -> None:
    async def body(world: World) -> None:
        for name in ("b", "c"):
            world.network.share_machine(name, "machine")
        pair = Pair(world)
        other = world.start_host("c")
        await pair.b.call(pair.b.port.network.listen(pair.accept, "", 3181))
        await other.call(other.port.network.listen(Collector, "", 3182))
        await pair.a.call(pair.a.port.network.connect(lambda: pair.client, "machine", 3181))
        assert len(pair.servers) == 1
        with pytest.raises(OSError, match="in use"):
            await other.call(other.port.network.listen(Collector, "", 3181))

    in_world(body)


def test_a_port_nobody_listens_on_is_refused() -> None:
    async def body(world: World) -> None:
        a = world.start_host("a")
        world.start_host("b")
        with pytest.raises(ConnectionRefusedError):
            await a.call(a.port.network.connect(Collector, "b", 1))

    in_world(body)


def test_a_full_wire_pauses_the_writer_and_a_reader_that_resumes_frees_it() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        assert pair.server.transport is not None
        pair.server.transport.pause_reading()
        pair.transport.write(bytes(2_000_000))
        assert pair.client.events == ["made", "pause"]
        assert pair.transport.get_write_buffer_size() > 1_500_000
        await asyncio.sleep(5.0)
        assert pair.server.data == b""
        pair.server.transport.resume_reading()
        await asyncio.sleep(5.0)
        assert len(pair.server.data) == 2_000_000
        assert pair.client.events == ["made", "pause", "resume"]
        assert pair.transport.get_write_buffer_size() == 0

    in_world(body)


def test_close_delivers_what_was_written_then_end_of_file() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        pair.transport.write(b"last words" * 100_000)
        pair.transport.close()
        assert pair.transport.is_closing()
        pair.transport.write(b"too late")
        await asyncio.sleep(2.0)
        assert pair.server.data == b"last words" * 100_000
        assert pair.server.events == ["made", "eof", "lost"]
        assert pair.server.error is None
        assert pair.client.events[-1] == "lost"
        assert world.network.connections == {}

    in_world(body)


def test_abort_resets_the_peer() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        pair.transport.abort()
        await asyncio.sleep(1.0)
        assert pair.client.events == ["made", "lost"]
        assert pair.server.events == ["made", "lost"]
        assert isinstance(pair.server.error, ConnectionResetError)

    in_world(body)


def test_a_reset_loses_a_tail_cut_in_the_middle_of_what_was_under_way() -> None:
    lengths: list[int] = []
    for seed in range(12):

        async def body(world: World) -> None:
            pair = await Pair(world).open()
            pair.transport.write(b"x" * 1000)
            assert world.network.reset("a", "b") == 1
            # The sender has not heard of it yet; what it goes on sending must not be taken for the continuation of what was cut.
            pair.transport.write(b"y")
            await asyncio.sleep(1.0)
            lengths.append(len(pair.server.data))
            assert b"y" not in pair.server.data
            assert isinstance(pair.client.error, ConnectionResetError)
            assert isinstance(pair.server.error, ConnectionResetError)

        in_world(body, seed)
    assert any(0 < length < 1000 for length in lengths)
    assert len(set(lengths)) > 5


def test_a_partition_holds_bytes_one_way_and_delivers_them_in_order_when_it_heals() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        assert pair.server.transport is not None
        world.network.block("a", "b")
        pair.transport.write(b"one ")
        await asyncio.sleep(30.0)
        pair.transport.write(b"two")
        pair.server.transport.write(b"back")
        await asyncio.sleep(30.0)
        assert (pair.server.data, pair.client.data) == (b"", b"back")
        world.network.unblock("a", "b")
        await asyncio.sleep(1.0)
        assert pair.server.data == b"one two"

    in_world(body)


def test_a_connect_across_a_partition_hangs_until_the_system_gives_up() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        world.network.block("b", "a")
        with pytest.raises(TimeoutError):
            await pair.a.call(pair.a.port.network.connect(Collector, "b", 3181))
        assert world.loop.time() > 19.0

    in_world(body)


def test_a_cancelled_connect_leaves_no_connection() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        for wait_s in (0.0001, 0.0004, 0.001, 0.002):
            task = pair.a.start(pair.a.port.network.connect(Collector, "b", 3181))
            await asyncio.sleep(wait_s)
            if task.cancel():
                await asyncio.sleep(1.0)
            if task.cancelled():
                assert len(world.network.connections) == 1
            else:
                task.result()[0].close()
                await asyncio.sleep(1.0)
        assert len(pair.servers) > 1

    in_world(body)


def test_a_crash_resets_the_peers_and_refuses_new_connections() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        pair.b.crash()
        await asyncio.sleep(1.0)
        assert isinstance(pair.client.error, ConnectionResetError)
        assert pair.server.events == ["made"], "a dead protocol hears nothing"
        with pytest.raises(ConnectionRefusedError):
            await pair.a.call(pair.a.port.network.connect(Collector, "b", 3181))
        assert world.network.connections == {}

    in_world(body)


def test_a_silent_crash_says_nothing_until_the_machine_is_up_again() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        pair.b.crash(silent=True)
        pair.transport.write(b"anybody there?")
        await asyncio.sleep(60.0)
        assert pair.client.events == ["made"]
        world.start_host("b")
        await asyncio.sleep(1.0)
        assert pair.client.events == ["made", "lost"]

    in_world(body)


def test_a_protocol_that_raises_loses_its_connection_and_is_reported() -> None:
    class Broken(Collector):
        def data_received(self, data: bytes) -> None:
            raise ZeroDivisionError

    world = World(1)

    async def main() -> None:
        pair = Pair(world)
        await pair.b.call(pair.b.port.network.listen(Broken, "", 1))
        transport, _ = await pair.a.call(pair.a.port.network.connect(lambda: pair.client, "b", 1))
        transport.write(b"?")
        await asyncio.sleep(1.0)
        assert pair.client.events == ["made", "lost"]

    world.run(main())
    assert [type(failure["exception"]) for failure in world.loop.failures] == [ZeroDivisionError]


def test_slow_links_differ_but_a_seed_always_draws_the_same() -> None:
    def times(seed: int) -> list[float]:
        found: list[float] = []

        async def body(world: World) -> None:
            pair = await Pair(world).open()
            for _ in range(5):
                pair.transport.write(b"ping")
                pair.transport.close()
                pair = await pair.again()
                found.append(world.loop.time())

        in_world(body, seed)
        return found

    assert times(3) == times(3)
    assert times(3) != times(4)


def test_hosts_are_reached_as_localhost_by_themselves() -> None:
    async def body(world: World) -> None:
        b: SimulatedHost = world.start_host("b")
        servers: list[Collector] = []

        def accept() -> Collector:
            servers.append(Collector())
            return servers[-1]

        await b.call(b.port.network.listen(accept, "127.0.0.1", 5432))
        transport, _ = await b.call(b.port.network.connect(Collector, "127.0.0.1", 5432))
        transport.write_eof()
        await asyncio.sleep(1.0)
        assert servers[0].events == ["made", "eof", "lost"]

    in_world(body)


def test_a_partition_holds_both_ways_between_groups_and_not_within_them_until_it_heals() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        assert pair.server.transport is not None
        world.start_host("c")
        world.network.partition(["a", "c"], ["b"])
        world.network.partition(["a"], ["b"])
        assert [world.network.is_blocked(*link) for link in (("a", "b"), ("b", "c"), ("a", "c"), ("c", "a"))] == [True, True, False, False]
        pair.transport.write(b"there")
        pair.server.transport.write(b"back")
        await asyncio.sleep(30.0)
        world.network.heal(["a", "c"], ["b"])
        await asyncio.sleep(30.0)
        assert (pair.server.data, pair.client.data) == (b"", b""), "partitions count: the second still holds"
        assert not world.network.is_blocked("b", "c")
        world.network.heal(["a"], ["b"])
        await asyncio.sleep(1.0)
        assert (pair.server.data, pair.client.data) == (b"there", b"back")
        assert pair.client.events == ["made"]
        assert world.network.fault_counts["partition"] == 2

    in_world(body)


def test_a_partition_with_a_node_on_both_sides_is_refused() -> None:
    world = World(1)
    with pytest.raises(ArgumentError, match="b cannot be on both"):
        world.network.partition(["a", "b"], ["b", "c"])
    assert not world.network.is_blocked("a", "b")


def test_a_reset_at_the_next_write_tears_exactly_that_write() -> None:
    lengths: list[int] = []
    for seed in range(12):

        async def body(world: World) -> None:
            pair = await Pair(world).open()
            world.network.reset_at_next_write("b", "a")
            await asyncio.sleep(1.0)
            assert pair.client.events == ["made"], "nothing is written, so nothing breaks"
            pair.transport.write(b"x" * 100)
            await asyncio.sleep(1.0)
            lengths.append(len(pair.server.data))
            assert isinstance(pair.client.error, ConnectionResetError)
            assert isinstance(pair.server.error, ConnectionResetError)
            assert (world.network.torn, world.network.fault_counts["reset_at_write"]) == (1, 1)
            pair = await pair.again()
            pair.transport.write(b"y" * 100)
            await asyncio.sleep(1.0)
            assert pair.server.data == b"y" * 100, "it strikes once"

        in_world(body, seed)
    assert all(0 < length < 100 for length in lengths)
    assert len(set(lengths)) > 5


def test_a_reset_between_writes_counts_no_torn_one() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        pair.transport.write(b"x" * 100)
        await asyncio.sleep(1.0)
        world.network.reset("a", "b")
        await asyncio.sleep(1.0)
        assert pair.server.data == b"x" * 100
        assert (world.network.torn, world.network.fault_counts["reset"]) == (0, 1)

    in_world(body)


def test_connections_overtake_one_another_and_that_is_counted() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        first = pair.transport
        second, _ = await pair.a.call(pair.a.port.network.connect(Collector, "b", 3181))
        arrived: list[str] = []
        for name, server in zip(("first", "second"), pair.servers, strict=True):
            server.data_received = lambda data, name=name: arrived.append(name)  # type: ignore[method-assign, misc]
        for _ in range(50):
            first.write(b"1")
            await asyncio.sleep(0.00001)
            second.write(b"2")
            await asyncio.sleep(0.1)
        swapped = sum(arrived[index : index + 2] == ["second", "first"] for index in range(0, 100, 2))
        assert len(arrived) == 100
        assert swapped > 5
        assert world.network.overtaken == swapped

    in_world(body)


def test_a_paused_node_is_silence_to_its_peers_and_its_kernel_accepts_and_buffers() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        assert pair.server.transport is not None
        pair.server.transport.write(b"written before")
        pair.b.pause()
        pair.transport.write(b"first ")
        await asyncio.sleep(30.0)
        assert pair.client.data == b"written before"
        second = Collector()
        transport, _ = await pair.a.call(pair.a.port.network.connect(lambda: second, "b", 3181))
        assert second.events == ["made"], "the kernel accepts although nobody does above it"
        assert len(pair.servers) == 1
        transport.write(b"hello")
        pair.transport.write(bytes(1_000_000))
        await asyncio.sleep(30.0)
        assert pair.client.events == ["made", "pause"], "no more than the connection's capacity is taken"
        assert pair.server.data == b""
        pair.b.resume()
        await asyncio.sleep(5.0)
        assert pair.client.events == ["made", "pause", "resume"]
        assert [len(server.data) for server in pair.servers] == [1_000_006, 5]
        assert pair.servers[0].data.startswith(b"first ")

    in_world(body)


def test_a_paused_node_hears_of_a_reset_when_it_goes_on_and_one_killed_resets_its_peers() -> None:
    async def body(world: World) -> None:
        pair = await Pair(world).open()
        pair.b.pause()
        pair.transport.abort()
        await asyncio.sleep(1.0)
        assert pair.server.events == ["made"]
        pair.b.resume()
        await asyncio.sleep(1.0)
        assert pair.server.events == ["made", "lost"]
        pair.client = Collector()
        pair = await pair.again()
        pair.b.pause()
        await asyncio.sleep(1.0)
        pair.b.crash()
        await asyncio.sleep(1.0)
        assert isinstance(pair.client.error, ConnectionResetError)
        assert world.network.connections == {}

    in_world(body)
