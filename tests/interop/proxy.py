"""A proxy before a bookie that records every frame in both directions."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field

from tests.interop.bookies import BookieProcess, Cluster
from tests.interop.stand import Stand
from triplicate.metadata import bookie_service, encode_service_info
from triplicate.wire import FrameBuffer, encode_frame, is_v3

READ_BYTES = 1 << 16
CLIENT, BOOKIE = "client", "bookie"


@dataclass(frozen=True)
class Frame:
    """One frame as received, with its length."""

    wire: str
    step: str
    """Step of the capture during which the frame passed."""
    sender: str
    """`CLIENT` or `BOOKIE`."""
    frame: bytes


@dataclass
class _Connection:
    wire: str = ""
    """Known after the client's first frame; a bookie never sends first."""
    sockets: list[socket.socket] = field(default_factory=list)


class RecordingProxy:
    """Listens on its own loopback port and forwards to another. Use it as a context manager."""

    def __init__(self, target_port: int) -> None:
        self.step = ""
        self.frames: list[Frame] = []
        self._target_port = target_port
        self._lock = threading.Lock()
        self._connections: list[_Connection] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._closed = False
        self._threads = [threading.Thread(target=self._accept, name="proxy", daemon=True)]
        self._threads[0].start()

    def of_step(self, step: str) -> list[Frame]:
        with self._lock:
            return [frame for frame in self.frames if frame.step == step]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                bookie = socket.create_connection(("127.0.0.1", self._target_port), timeout=5)
            except OSError:
                client.close()
                continue
            bookie.settimeout(None)
            connection = _Connection(sockets=[client, bookie])
            with self._lock:
                self._connections.append(connection)
            for sender, source, target in ((CLIENT, client, bookie), (BOOKIE, bookie, client)):
                pump = threading.Thread(target=self._pump, args=(connection, sender, source, target), name=f"proxy {sender}", daemon=True)
                self._threads.append(pump)
                pump.start()

    def _pump(self, connection: _Connection, sender: str, source: socket.socket, target: socket.socket) -> None:
        frames = FrameBuffer()
        with contextlib.suppress(OSError):
            while data := source.recv(READ_BYTES):
                with self._lock:
                    for body in frames.bodies(data):
                        connection.wire = connection.wire or ("v3" if is_v3(bytes(body)) else "v2")
                        self.frames.append(Frame(connection.wire, self.step, sender, encode_frame(bytes(body))))
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections and the listener: to a client the bookie is down."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            for end in connection.sockets:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=5)
        for connection in connections:
            for end in connection.sockets:
                end.close()

    def __enter__(self) -> RecordingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def before(stand: Stand, cluster: Cluster, bookie: BookieProcess) -> RecordingProxy:
    """Register a proxy at a registered bookie's place: later connections of clients go through it. The caller closes it."""
    proxy = RecordingProxy(bookie.port)
    stand.set_node(f"/{cluster.name}/ledgers/available/{bookie.bookie_id}", encode_service_info(bookie_service("127.0.0.1", proxy.port)))
    return proxy
