"""The floor under the append figures: a bare loop of the same shape, with no protocol checks, no fencing and no storage.

Received chunks of frames go to a thread, which writes all waiting ones with one `writev` and one `fdatasync`. The group is then answered
with one write per connection. The difference to our figures is the cost of correctness.

    floor.py server FILE          prints its port
    floor.py client PORT,… SIZE WINDOW SECONDS    prints figures as JSON
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, cast

from google_crc32c import extend, value

if TYPE_CHECKING:
    from benchmarks.driving import drive, run_loop
else:  # If this file runs as a program, its own folder is on the path.
    from driving import drive, run_loop

FILE_BYTES = 1 << 28
WRITEV_MOST = 512
LENGTH = struct.Struct(">I")
IDS = struct.Struct(">qq")
PREFIX = struct.Struct(">II20s")
HEADER = struct.Struct(">qqqq")
ANSWER = struct.Struct(">IIIqq")
ADD_WORD = 0x02010000
IDS_OFFSET = 28
KEY = b"k" * 20

Item = tuple[bytes, asyncio.Transport, list[tuple[int, int]]]


class Journal(threading.Thread):
    """Writes and syncs all waiting chunks as one group."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(daemon=True)
        self.loop = loop
        self.file = os.open(path, os.O_CREAT | os.O_WRONLY)
        os.posix_fallocate(self.file, 0, FILE_BYTES)
        os.fsync(self.file)
        self.offset = 0
        self.arrived = threading.Condition()
        self.waiting: list[Item] = []

    def put(self, item: Item) -> None:
        with self.arrived:
            self.waiting.append(item)
            self.arrived.notify()

    def run(self) -> None:
        while True:
            with self.arrived:
                while not self.waiting:
                    self.arrived.wait()
                group, self.waiting = self.waiting, []
            size = sum(len(item[0]) for item in group)
            if self.offset + size > FILE_BYTES:
                self.offset = 0
            for start in range(0, len(group), WRITEV_MOST):
                part = [item[0] for item in group[start : start + WRITEV_MOST]]
                self.offset += os.pwritev(self.file, part, self.offset)
            os.fdatasync(self.file)
            self.loop.call_soon_threadsafe(self.answer, group)

    def answer(self, group: list[Item]) -> None:
        for _, transport, ids in group:
            if transport.is_closing():
                continue
            transport.write(b"".join([ANSWER.pack(24, ADD_WORD, 0, ledger_id, entry_id) for ledger_id, entry_id in ids]))


class Server(asyncio.Protocol):
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.rest:
            data = self.rest + data
        position, end = 0, len(data)
        ids: list[tuple[int, int]] = []
        while end - position >= 4:
            following = position + 4 + LENGTH.unpack_from(data, position)[0]
            if following > end:
                break
            ids.append(IDS.unpack_from(data, position + IDS_OFFSET))
            position = following
        self.rest = data[position:]
        if ids:
            self.journal.put((data[:position], self.transport, ids))


async def serve(path: str) -> None:
    loop = asyncio.get_running_loop()
    journal = Journal(path, loop)
    journal.start()
    server = await loop.create_server(lambda: Server(journal), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Channel(asyncio.Protocol):
    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.rest = b""
        self.out: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(1 << 24)

    def data_received(self, data: bytes) -> None:
        if self.rest:
            data = self.rest + data
        whole = len(data) // ANSWER.size * ANSWER.size
        counts, confirmed = self.writer.counts, self.writer.confirmed
        for _, _, _, _, entry_id in ANSWER.iter_unpack(data[:whole]):
            if entry_id > confirmed:
                counts[entry_id] = counts.get(entry_id, 0) + 1
        self.rest = data[whole:]
        self.writer.confirm()


class Writer:
    """Numbers entries, sends them on every channel, and confirms them in order after two answers."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.channels: list[Channel] = []
        self.counts: dict[int, int] = {}
        self.waiting: deque[asyncio.Future[int]] = deque()
        self.next = 0
        self.confirmed = -1
        self.length = 0
        self.flush_due = False

    def append(self, payload: bytes) -> asyncio.Future[int]:
        entry_id = self.next
        self.next += 1
        self.length += len(payload)
        header = HEADER.pack(1, entry_id, self.confirmed, self.length)
        digest = LENGTH.pack(extend(value(header), payload))
        frame = b"".join((PREFIX.pack(60 + len(payload), ADD_WORD, KEY), header, digest, payload))
        future = self.loop.create_future()
        self.waiting.append(future)
        for channel in self.channels:
            channel.out.append(frame)
        if not self.flush_due:
            self.flush_due = True
            self.loop.call_soon(self.flush)
        return future

    def flush(self) -> None:
        self.flush_due = False
        for channel in self.channels:
            out, channel.out = channel.out, []
            channel.transport.write(b"".join(out))

    def confirm(self) -> None:
        counts, entry_id = self.counts, self.confirmed + 1
        while counts.get(entry_id, 0) >= 2:
            del counts[entry_id]
            self.waiting.popleft().set_result(entry_id)
            entry_id += 1
        self.confirmed = entry_id - 1


async def write(ports: list[int], size: int, window: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    writer = Writer()
    for port in ports:
        _, channel = await loop.create_connection(lambda: Channel(writer), "127.0.0.1", port)
        writer.channels.append(channel)
    print(json.dumps(await drive(writer.append, size, window, seconds)))


def main() -> None:
    if sys.argv[1] == "server":
        run_loop(serve(sys.argv[2]))
    else:
        ports, size, window, seconds = sys.argv[2:6]
        run_loop(write([int(port) for port in ports.split(",")], int(size), int(window), float(seconds)))


if __name__ == "__main__":
    main()
