"""The ports on the operating system."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop
from prometheus_client.parser import text_string_to_metric_families

from tests.waiting import LIMIT_S
from triplicate.errors import ArgumentError
from triplicate.runtime import Buffer, Group, Metrics, ProbeAnswer, keep_freed_memory, real, real_host, serve_metrics
from triplicate.runtime.real_disk import BUFFERS_PER_WRITE_MAX, RealDisk, RealFile

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


def run(body: Coroutine[Any, Any, None], loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await body

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(limited())


# Disk.


def test_a_file_holds_what_was_written_and_reads_short_only_at_its_end(tmp_path: Path) -> None:
    async def body() -> None:
        disk = real_host("test").disk
        path = str(tmp_path / "file")
        file = disk.open(path, create=True, exclusive=True)
        assert file.path == path
        assert file.append([b"abc", bytearray(b"de"), memoryview(b"xfgx")[1:3]]) == 0
        assert file.append([b"h"]) == 7
        assert file.pwrite([b"BC"], 1) == 2
        assert (file.pread(100, 0), file.pread(3, 2), file.pread(5, 8)) == (b"aBCdefgh", b"Cde", b"")
        assert file.size() == 8
        file.allocate(0, 4096)
        assert file.size() == 4096
        file.truncate(3)
        file.sync()
        assert file.pread(10, 0) == b"aBC"
        file.close()
        file.close()
        with pytest.raises(FileExistsError):
            disk.open(path, create=True, exclusive=True)
        with pytest.raises(FileNotFoundError):
            disk.open(path + "x")
        reader = disk.open(path, readonly=True)
        with pytest.raises(OSError):
            reader.pwrite([b"x"], 0)
        reader.close()

    run(body())


def test_more_buffers_than_one_call_takes_are_all_written(tmp_path: Path) -> None:
    async def body() -> None:
        file = real_host("test").disk.open(str(tmp_path / "file"), create=True)
        buffers: list[Buffer] = [b"%06d" % number for number in range(BUFFERS_PER_WRITE_MAX * 2 + 7)]
        assert file.pwrite(buffers, 10) == 6 * len(buffers)
        assert file.pread(10**6, 10) == b"".join(buffers)
        file.close()

    run(body())


@pytest.mark.parametrize("most_bytes", [1, 3, 4, 7])
def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    whole = os.pwritev

    def short(target: int, buffers: list[Buffer], offset: int) -> int:
        return whole(target, [b"".join(buffers)[:most_bytes]], offset)

    monkeypatch.setattr(os, "pwritev", short)
    file = RealFile(str(path), descriptor)
    assert file.pwrite([b"one", b"", b"three", b"5"], 2) == 9
    file.close()
    assert path.read_bytes() == b"\0\0onethree5"


def test_a_disk_that_takes_nothing_is_an_error_and_not_an_endless_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealFile("x", os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with pytest.raises(OSError, match="no byte"):
        file.pwrite([b"x"], 0)
    file.close()


def test_an_error_of_a_file_names_it(tmp_path: Path) -> None:
    disk = RealDisk()
    full = disk.open("/dev/full")
    readonly = tmp_path / "readonly"
    readonly.touch()
    file = disk.open(str(readonly), readonly=True)
    failing: list[tuple[str, int, Callable[[], object]]] = [
        ("/dev/full", errno.ENOSPC, lambda: full.pwrite([b"x"], 0)),
        ("/dev/full", errno.EINVAL, full.sync),
        (str(readonly), errno.EBADF, lambda: file.pwrite([b"x"], 0)),
        (str(readonly), errno.EBADF, lambda: file.allocate(0, 10)),
        (str(readonly), errno.EINVAL, lambda: file.truncate(10)),
        (str(readonly), errno.EINVAL, lambda: file.pread(1, -1)),
    ]
    try:
        for path, number, call in failing:
            with pytest.raises(OSError, match=path) as raised:
                call()
            assert (raised.value.errno, raised.value.filename) == (number, path)
    finally:
        full.close()
        file.close()


def test_directories_are_listed_renamed_and_synced(tmp_path: Path) -> None:
    async def body() -> None:
        disk = real_host("test").disk
        root = str(tmp_path / "a" / "b")
        disk.mkdir(root)
        disk.mkdir(root)
        for name in ("z", "a"):
            disk.open(f"{root}/{name}", create=True).close()
        assert disk.names(root) == ["a", "z"]
        disk.rename(f"{root}/a", f"{root}/z")
        disk.sync_directory(root)
        assert disk.names(root) == ["z"]
        disk.delete(f"{root}/z")
        disk.delete(f"{root}/z")
        assert not disk.exists(f"{root}/z")
        free, total = disk.free_space(root)
        assert 0 < free <= total

    run(body())


def test_a_lock_is_held_against_this_process_and_others_until_it_is_released(tmp_path: Path) -> None:
    async def body() -> None:
        disk = real_host("test").disk
        path = str(tmp_path / "lock")
        release = disk.lock(path)
        with pytest.raises(BlockingIOError):
            disk.lock(path)
        attempt = f"import fcntl,os; fcntl.flock(os.open({path!r}, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", attempt, stderr=asyncio.subprocess.DEVNULL)
        assert await process.wait() == 1
        release()
        release()
        disk.lock(path)()

    run(body())


# The log device.


class Recorder:
    """A log device over one file that remembers its groups."""

    def __init__(self, folder: Path, most_per_group: int = 10**6) -> None:
        self.disk = real_host("test").disk
        self.file = self.disk.open(str(folder / "log"), create=True)
        self.groups: list[list[bytes]] = []
        self.failures: list[tuple[list[bytes], OSError]] = []
        self.formed_on: str = ""
        self.offset = 0
        self.most = most_per_group
        self.changed = asyncio.Event()
        self.device = self.disk.log_device("journal", self.form, self.done, self.failed)

    def form(self, items: list[bytes]) -> tuple[Group, int]:
        self.formed_on = threading.current_thread().name
        taken = items[: self.most]
        group = Group(self.file, self.offset, taken)
        self.offset += sum(map(len, taken))
        return group, len(taken)

    def done(self, items: list[bytes]) -> None:
        self.groups.append(list(items))
        self.changed.set()

    def failed(self, items: list[bytes], error: OSError) -> None:
        self.failures.append((list(items), error))
        self.changed.set()


def test_a_log_device_answers_every_item_in_order_after_its_sync(tmp_path: Path) -> None:
    async def body() -> None:
        recorder = Recorder(tmp_path, most_per_group=3)
        items = [b"%d," % number for number in range(10)]
        for item in items:
            recorder.device.submit(item)
        await recorder.device.close()
        await recorder.device.close()
        assert [item for group in recorder.groups for item in group] == items
        assert max(len(group) for group in recorder.groups) == 3
        assert recorder.file.pread(1000, 0) == b"".join(items)
        assert recorder.formed_on == "journal"
        with pytest.raises(OSError, match="closed"):
            recorder.device.submit(b"late")
        recorder.file.close()

    for loop_factory in LOOPS:
        run(body(), loop_factory)
        (tmp_path / "log").unlink()


def test_a_log_device_reports_a_write_before_the_sync_where_the_group_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        recorder = Recorder(tmp_path)
        told: list[list[bytes]] = []
        leave, heard = threading.Event(), asyncio.Event()

        def form(items: list[bytes]) -> tuple[Group, int]:
            return Group(recorder.file, 0, items, report_written=items[0] == b"early"), len(items)

        def written(items: list[bytes]) -> None:
            assert recorder.groups == []
            told.append(items)
            heard.set()

        monkeypatch.setattr(recorder.file, "sync", lambda: leave.wait(5))
        device = recorder.disk.log_device("early", form, recorder.done, recorder.failed, written)
        device.submit(b"early")
        await asyncio.wait_for(heard.wait(), 5)
        assert recorder.file.pread(10, 0) == b"early"
        leave.set()
        await asyncio.wait_for(recorder.changed.wait(), 5)
        device.submit(b"usual")
        await device.close()
        assert told == [[b"early"]]
        assert recorder.groups == [[b"early"], [b"usual"]]
        await recorder.device.close()
        recorder.file.close()

    for loop_factory in LOOPS:
        run(body(), loop_factory)
        (tmp_path / "log").unlink()


def test_what_gathers_while_a_group_is_written_forms_the_next_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        recorder = Recorder(tmp_path)
        entered, leave = threading.Event(), threading.Event()

        def slow_sync() -> None:
            entered.set()
            leave.wait(5)

        monkeypatch.setattr(recorder.file, "sync", slow_sync)
        recorder.device.submit(b"first")
        await asyncio.to_thread(entered.wait, 5)
        for number in range(5):
            recorder.device.submit(b"%d" % number)
        assert recorder.groups == [], "nothing is answered before its sync"
        leave.set()
        await recorder.device.close()
        assert recorder.groups == [[b"first"], [b"0", b"1", b"2", b"3", b"4"]]
        recorder.file.close()

    run(body())


@pytest.mark.parametrize("where", ["form", "sync", "bug", "empty"])
def test_a_log_device_that_failed_fails_its_waiters_and_accepts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async def body() -> None:
        recorder = Recorder(tmp_path, most_per_group=1)
        recorder.device.submit(b"good")
        await recorder.changed.wait()
        recorder.changed.clear()

        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, "disk full")

        if where == "form":
            monkeypatch.setattr(recorder, "most", "no number")
        elif where == "empty":
            monkeypatch.setattr(recorder, "most", 0)
        elif where == "bug":
            monkeypatch.setattr(recorder.file, "sync", lambda: 1 // 0)
        else:
            monkeypatch.setattr(recorder.file, "sync", fail)
        for item in (b"one", b"two"):
            recorder.device.submit(item)
        await recorder.changed.wait()
        assert recorder.groups == [[b"good"]]
        assert [items for items, _ in recorder.failures] == [[b"one", b"two"]]
        assert isinstance(recorder.failures[0][1], OSError)
        with pytest.raises(OSError, match="dead"):
            recorder.device.submit(b"late")
        await recorder.device.close()
        recorder.file.close()

    run(body())


# Network.


class Echo(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.received = b""
        self.changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.changed.set()


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_connections_have_no_delay_and_are_kept_alive_on_both_sides(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body() -> None:
        network = real_host("test").network
        accepted: asyncio.Future[Echo] = asyncio.get_running_loop().create_future()

        def accept() -> Echo:
            accepted.set_result(Echo())
            return accepted.result()

        listener = await network.listen(accept, "127.0.0.1", 0)
        transport, protocol = await network.connect(Echo, *listener.address)
        assert isinstance(protocol, Echo)
        transport.write(b"hello")
        other = await accepted
        await other.changed.wait()
        assert other.received == b"hello"
        for side in (transport, other.transport):
            assert side is not None
            connection = side.get_extra_info("socket")
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        await listener.close()
        with pytest.raises(OSError):
            await network.connect(Echo, *listener.address)
        assert other.transport is not None
        other.transport.write(b"still there")
        await protocol.changed.wait()
        assert protocol.received == b"still there"
        transport.close()
        other.changed.clear()
        await other.changed.wait()

    run(body(), loop_factory)


@pytest.mark.parametrize("loop_factory", LOOPS)
@pytest.mark.parametrize("turns", range(5))
def test_a_connection_accepted_just_before_the_listener_closes_reaches_its_protocol_or_is_reset(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], turns: int
) -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        accepted: list[Echo] = []

        def accept() -> Echo:
            accepted.append(Echo())
            return accepted[-1]

        listener = await real_host("test").network.listen(accept, "127.0.0.1", 0)
        with socket.create_connection(listener.address, timeout=LIMIT_S) as client:
            client.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)
            await listener.close()
            await listener.close()
            for protocol in accepted:
                assert protocol.transport is not None
                protocol.transport.write(b"hello")
            async with asyncio.timeout(LIMIT_S):
                if accepted:
                    assert await loop.sock_recv(client, 5) == b"hello"
                else:
                    with pytest.raises(ConnectionResetError):
                        await loop.sock_recv(client, 5)
            for protocol in accepted:
                assert protocol.transport is not None
                protocol.transport.abort()

    # A socket that is collected while it is open is a ResourceWarning, which fails the test.
    run(body(), loop_factory)


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's tcp_info")
@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_burst_of_connections_waits_to_be_accepted(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    listening: list[socket.socket] = []
    monkeypatch.setattr(real, "_set_options", listening.append)

    async def body() -> None:
        listener = await real_host("test").network.listen(Echo, "127.0.0.1", 0)
        # The fifth number of 32 bits after eight bytes: for a listening socket, its backlog.
        (backlog,) = struct.unpack_from("I", listening[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 8 + 5 * 4)
        assert backlog == min(real.BACKLOG, int(Path("/proc/sys/net/core/somaxconn").read_text()))
        await listener.close()

    run(body(), loop_factory)


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_port_in_use_and_a_name_that_is_none_are_errors(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body() -> None:
        network = real_host("test").network
        listener = await network.listen(Echo, "", 0)
        assert listener.address[0] == "127.0.0.1"
        with pytest.raises(OSError) as taken:
            await network.listen(Echo, *listener.address)
        assert taken.value.errno == errno.EADDRINUSE
        await listener.close()
        with pytest.raises(OSError):
            await network.connect(Echo, "no.such.host.invalid", 1)

    run(body(), loop_factory)


# Entropy, clock, trace.


def test_random_streams_repeat_by_seed_and_differ_by_node_and_purpose() -> None:
    async def body() -> None:
        def draw(name: str, seed: int | None, purpose: str) -> float:
            return real_host(name, seed=seed).entropy.stream(purpose).random()

        assert draw("a", 1, "x") == draw("a", 1, "x")
        assert len({draw("a", 1, "x"), draw("b", 1, "x"), draw("a", 2, "x"), draw("a", 1, "y"), draw("a", None, "x")}) == 5
        assert draw("a", None, "x") != draw("a", None, "x")
        secrets = {real_host("a", seed=1).entropy.secret(16) for _ in range(3)}
        assert len(secrets) == 3, "no seed repeats a secret"
        entropy = real_host("a", seed=1).entropy
        assert entropy.stream("x") is entropy.stream("x")

    run(body())


def test_the_clock_calls_back_unless_cancelled() -> None:
    async def body() -> None:
        clock = real_host("test").clock
        called: list[str] = []
        clock.call_at(clock.monotonic() + 0.01, called.append, "yes")
        clock.call_at(clock.monotonic() + 0.01, called.append, "no").cancel()
        await asyncio.sleep(0.03)
        assert called == ["yes"]
        assert abs(clock.wall_us() / 1e6 - time.time()) < 5

    run(body())


# Metrics.


async def request(address: tuple[str, int], data: bytes) -> tuple[bytes, bytes]:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], rest


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_metrics_are_served_and_nothing_else(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body() -> None:
        metrics = Metrics()
        metrics.counter("adds", "Entries added.", ("ledger",)).labels("1").inc(3)
        listener = await serve_metrics(real_host("test"), metrics, 0)
        assert listener.address[0] == "127.0.0.1"
        status, page = await request(listener.address, b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status == b"HTTP/1.0 200 OK"
        assert page == b'# HELP adds_total Entries added.\n# TYPE adds_total counter\nadds_total{ledger="1"} 3.0\n'
        assert await request(listener.address, b"HEAD /metrics HTTP/1.0\r\n\r\n") == (b"HTTP/1.0 200 OK", b"")
        assert (await request(listener.address, b"GET / HTTP/1.0\r\n\r\n"))[0].startswith(b"HTTP/1.0 404")
        assert (await request(listener.address, b"POST /metrics HTTP/1.0\r\n\r\n"))[0].startswith(b"HTTP/1.0 405")
        assert (await request(listener.address, b"\r\n\r\n"))[0].startswith(b"HTTP/1.0 400")
        assert (await request(listener.address, b"GET /" + b"x" * 9000))[0].startswith(b"HTTP/1.0 431")
        await listener.close()

    run(body(), loop_factory)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_probes_are_answered_with_json_beside_the_metrics(address: str) -> None:
    async def body() -> None:
        pages = {"/health": lambda: ProbeAnswer(True, {"healthy": True}), "/ready": lambda: ProbeAnswer(False, {"reasons": ["starting"]})}
        listener = await serve_metrics(real_host("test"), Metrics(), 0, address, pages)
        assert listener.address[0] == address
        assert await request(listener.address, b"GET /health HTTP/1.1\r\n\r\n") == (b"HTTP/1.0 200 OK", b'{"healthy": true}\n')
        status, page = await request(listener.address, b"GET /ready?verbose HTTP/1.1\r\n\r\n")
        assert (status, json.loads(page)) == (b"HTTP/1.0 503 Service Unavailable", {"reasons": ["starting"]})
        assert await request(listener.address, b"HEAD /ready HTTP/1.1\r\n\r\n") == (b"HTTP/1.0 503 Service Unavailable", b"")
        assert (await request(listener.address, b"DELETE /ready HTTP/1.1\r\n\r\n"))[0].startswith(b"HTTP/1.0 405")
        status, page = await request(listener.address, b"GET /readyz HTTP/1.1\r\n\r\n")
        assert (status, page) == (b"HTTP/1.0 404 Not Found", b"only /metrics, /health, /ready\n")
        await listener.close()

    run(body(), asyncio.new_event_loop)


def test_a_request_that_is_never_finished_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.runtime.metrics_server.REQUEST_TIMEOUT_S", 0.1)

    async def body() -> None:
        listener = await serve_metrics(real_host("test"), Metrics(), 0)
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"GET /metrics HTTP/1.1\r\n")
        try:
            left = await asyncio.wait_for(reader.read(), 30.0)
        except ConnectionResetError:
            left = b""
        assert left == b""
        writer.close()
        await listener.close()

    run(body(), asyncio.new_event_loop)


def test_tallies_and_distributions_read_as_counters_and_histograms() -> None:
    metrics = Metrics()
    for value in (0.5, 1.0, 1.5, 7.0):
        metrics.distribution("sizes", "x", buckets=(1.0, 4.0)).observe(value)
    metrics.tally("entries", "y").inc()
    metrics.tally("entries", "y").inc(3)
    families = {family.name: family for family in text_string_to_metric_families(metrics.expose().decode())}
    assert (families["sizes"].type, families["entries"].type) == ("histogram", "counter")
    assert [(sample.name, sample.labels.get("le"), sample.value) for family in families.values() for sample in family.samples] == [
        ("sizes_bucket", "1.0", 2.0),
        ("sizes_bucket", "4.0", 3.0),
        ("sizes_bucket", "+Inf", 4.0),
        ("sizes_count", None, 4.0),
        ("sizes_sum", None, 10.0),
        ("entries_total", None, 4.0),
    ]


def test_metrics_of_two_nodes_do_not_mix_and_asking_twice_gives_the_same() -> None:
    one, two = Metrics(), Metrics()
    one.gauge("size", "x").set(5)
    assert one.gauge("size", "x") is one.gauge("size", "x")
    one.distribution("latency_seconds", "x").observe(0.003)
    one.counter("appends", "x").inc()
    assert b'latency_seconds_bucket{le="0.005"} 1.0' in one.expose()
    assert b"_created" not in one.expose()
    assert two.expose() == b""
    with pytest.raises(ArgumentError, match="size"):
        one.counter("size", "x")
    with pytest.raises(ArgumentError, match="size"):
        one.gauge("size", "x", ("label",))


def test_the_allocator_is_set_or_says_that_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, option: int, value: int) -> int:
            told.append((option, value))
            return 1

    monkeypatch.setattr("ctypes.CDLL", lambda name: Library())
    assert keep_freed_memory()
    assert told == [(-1, 64 * 1024 * 1024), (-3, 32 * 1024 * 1024)]
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()
