"""A TCP proxy before a bookie that can delay, hold back and cut its connections."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

READ_BYTES = 1 << 16
CONNECT_LIMIT_S = 5.0
DRAIN_BYTES = 1 << 20
"""Bytes that one direction of a delayed connection holds at most."""


class FaultProxy:
    """Listens on one address and forwards to another. Its methods are called on the event loop of the proxies.

    Args:
        listen: host and port that the bookie is registered with.
        target: host and port that the bookie listens on.
    """

    def __init__(self, listen: tuple[str, int], target: tuple[str, int]) -> None:
        self._listen = listen
        self._target = target
        self._delay_s = 0.0
        self._flows = asyncio.Event()
        self._flows.set()
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        """By the task that serves it: both ends of each connection."""
        self._server: asyncio.Server | None = None
        self.connections_cut = 0

    async def open(self) -> None:
        """Begin to accept connections. Idempotent."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, *self._listen, limit=READ_BYTES)

    async def refuse(self) -> None:
        """Accept no connection, and cut the present ones."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self.cut()

    async def cut(self) -> None:
        """Break every connection."""
        self.connections_cut += len(self._connections)
        for ends in self._connections.values():
            for end in ends:
                end.transport.abort()

    async def close(self) -> None:
        """Accept no connection any more, and wait until the present ones have ended."""
        await self.release()
        await self.refuse()
        if self._connections:
            await asyncio.wait(list(self._connections), timeout=CONNECT_LIMIT_S)

    async def set_delay(self, seconds: float) -> None:
        """Delay the bytes of both directions by a time from now on."""
        self._delay_s = seconds

    async def hold(self) -> None:
        """Forward nothing until `release`. The connections stay open, as on a network that drops every packet."""
        self._flows.clear()

    async def release(self) -> None:
        """Forward again."""
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        ends = self._connections[task] = [writer]
        try:
            async with asyncio.timeout(CONNECT_LIMIT_S):
                far_reader, far_writer = await asyncio.open_connection(*self._target)
            ends.append(far_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, far_writer))
                group.create_task(self._forward(far_reader, writer))
        except* (OSError, _EndOfStream):
            pass  # Either end has closed or broken the connection, or the bookie is away; the other end is closed below.
        finally:
            for end in ends:
                end.close()
            del self._connections[task]

    async def _forward(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(READ_BYTES):
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            await self._flows.wait()
            target.write(data)
            if target.transport.get_write_buffer_size() > DRAIN_BYTES:
                await target.drain()
        raise _EndOfStream


class _EndOfStream(Exception):
    """One end has closed the connection."""


class ProxyThread:
    """The event loop of all proxies, in a thread. Use it as a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._proxies: list[FaultProxy] = []

    def __enter__(self) -> ProxyThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for proxy in self._proxies:
            with contextlib.suppress(TimeoutError):
                self.run(proxy.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a method of a proxy to its end."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(CONNECT_LIMIT_S * 2)

    def add(self, listen: tuple[str, int], target: tuple[str, int]) -> FaultProxy:
        """Open a new proxy."""
        proxy = FaultProxy(listen, target)
        self.run(proxy.open())
        self._proxies.append(proxy)
        return proxy

    def remove(self, proxy: FaultProxy) -> None:
        """Close a proxy for good."""
        self.run(proxy.close())
        self._proxies.remove(proxy)
