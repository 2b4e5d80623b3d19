"""A client of a bookie in the same process: requests and answers are passed directly, and an answer arrives at the instant of sending."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from tests.crash.machine import Endpoint, Machine
from triplicate.sim.virtual_loop import context_of
from triplicate.wire import AddRequest, FrameBuffer, ReadRequest, Request, Response, decode_response, encode_request, v3

Heard = Callable[[Response], None]


class ConnectionClosed(Exception):
    """The bookie closed the connection before it answered."""


class Caller(asyncio.Transport):
    """One connection. Version 2 carries adds and reads only."""

    def __init__(self, machine: Machine, endpoint: Endpoint, *, version: int = 3) -> None:
        super().__init__()
        self.closed = False
        self._loop = machine.loop
        self._context = context_of(machine.life)
        """The context of the bookie's process: work that a request causes belongs to it, and ends with it."""
        self._version = version
        self._frames = FrameBuffer()
        self._waiting: dict[object, deque[tuple[Heard | None, asyncio.Future[Response]]]] = {}
        self._transactions = 0
        self._paused = False
        self._held: list[bytes] = []
        self._protocol = endpoint.accept()
        self._call(self._protocol.connection_made, self)

    # The client's side.

    def start(self, request: Request, heard: Heard | None = None) -> asyncio.Future[Response]:
        """Send a request; `heard` is called with the answer as soon as the bookie sends it."""
        future: asyncio.Future[Response] = self._loop.create_future()
        if self.closed:
            future.set_exception(ConnectionClosed())
            return future
        key: object
        if self._version == 3:
            self._transactions += 1
            key, frame = self._transactions, v3.encode_request(request, self._transactions)
        else:
            assert isinstance(request, AddRequest | ReadRequest)
            key, frame = (isinstance(request, AddRequest), request.ledger_id, request.entry_id), encode_request(request)
        self._waiting.setdefault(key, deque()).append((heard, future))
        self.give(frame)
        return future

    async def ask(self, request: Request, heard: Heard | None = None) -> Response:
        """Raises ConnectionClosed."""
        return await self.start(request, heard)

    def give(self, data: bytes) -> None:
        if self._paused:
            self._held.append(data)
        else:
            self._call(self._protocol.data_received, data)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        self._context.copy().run(function, *args)

    # The bookie's side.

    def write(self, data: Any) -> None:
        for body in self._frames.bodies(bytes(data)):
            key: object
            if self._version == 3:
                key, response = v3.decode_response(body)
            else:
                response = decode_response(body)
                answer = cast("Any", response)
                key = (type(response).__name__ == "AddResponse", answer.ledger_id, answer.entry_id)
            heard, future = self._waiting[key].popleft()
            if heard is not None:
                heard(response)
            if not future.done():
                future.set_result(response)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        for waiting in self._waiting.values():
            for _, future in waiting:
                if not future.done():
                    future.set_exception(ConnectionClosed())
                    # The caller may have stopped waiting.
                    future.exception()
        self._loop.call_soon(self._protocol.connection_lost, None, context=self._context.copy())

    def is_closing(self) -> bool:
        return self.closed

    def is_reading(self) -> bool:
        return not (self._paused or self.closed)

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._loop.call_soon(self._go_on, context=self._context.copy())

    def _go_on(self) -> None:
        while self._held and not self._paused and not self.closed:
            self._protocol.data_received(self._held.pop(0))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("caller", 1) if name == "peername" else default
