"""The ports: the only access of Triplicate to time, network, disk, threads and randomness.

Client, bookie, metadata, log and replica receive a `Host` and use nothing else. `runtime.real` implements it on the
operating system, `sim` implements it in virtual time from one seed, so the same code runs in both.
Sizes are bytes, times are seconds as float unless a name says otherwise (`_us`, `_ms`).
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

Buffer = bytes | bytearray | memoryview
Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)
Result = TypeVar("Result")


class Timer(Protocol):
    """The result of `call_at`."""

    def cancel(self) -> None:
        """Cancel the call. No effect if it has run."""


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds since some moment; never goes back. The event loop's own time."""

    def elapsed(self) -> float:
        """Seconds since some moment; never goes back. It includes time in which the machine was suspended, if the operating system
        reports it. For spans that must not be measured too short."""

    def wall_us(self) -> int:
        """Microseconds since the epoch, UTC; may jump."""

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        """Run ``callback(*args)`` on the loop when `monotonic()` reaches `when`."""


class Listener(Protocol):
    """A listening socket."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port for peers to connect to: the actual port if 0 was requested."""

    async def close(self) -> None:
        """Stop listening. Connections already accepted stay open."""


class Network(Protocol):
    """TCP with asyncio's own Protocol and Transport interface; TCP_NODELAY is on."""

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Open a connection.

        Raises:
            OSError: refused or unreachable. The caller bounds the time.
        """

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        """Accept connections, one protocol each. Port 0 stands for a free one.

        Raises:
            OSError: the port is in use.
        """

    async def start_tls(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        limit_s: float,
        server_name: str | None,
        received: bytes = b"",
    ) -> asyncio.Transport:
        """Protect an open connection by TLS. Until it returns, `protocol` receives nothing and nothing may be sent.

        The peer may send its first bytes at once with the end of its handshake. They are delivered in the next turn of the loop, even if
        the caller has paused reading meanwhile. So the caller awaits this in the task that uses the transport, and not through another.

        Bytes that arrived before belong to the caller: a server must refuse a peer that sent any behind its request for TLS.

        Args:
            transport: the connection; it must not be used afterwards.
            protocol: the connection's protocol. `connection_made` is not called again.
            limit_s: limit of the handshake in seconds.
            server_name: the host that the server's certificate must name; None on the side of the server.
            received: the beginning of the peer's handshake, if it has arrived already; see `HeldBytes`.

        Returns:
            the transport to use from now on.

        Raises:
            OSError: the handshake failed (`ssl.SSLError`, with the reason), took too long, or the peer has left. The connection is aborted,
                and the protocol may not hear of its loss.
        """


class File(Protocol):
    """One open file. Methods block: the loop may call only quick ones, others go through a `Worker`."""

    path: str

    def pread(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes at `offset`; fewer only at the end of the file."""

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> int:
        """Write all of `buffers` one after another at `offset`; returns the number of bytes. Not durable before `sync`."""

    def append(self, buffers: Sequence[Buffer]) -> int:
        """`pwrite` at the end of the file; returns the offset at which it begins."""

    def size(self) -> int:
        """Bytes in the file."""

    def truncate(self, size: int) -> None:
        """Cut or extend with zeros."""

    def allocate(self, offset: int, length: int) -> None:
        """Reserve space, so that later writes neither fail for lack of space nor change the size."""

    def sync(self) -> None:
        """Return when the data is on stable storage (fdatasync)."""

    def close(self) -> None: ...


@dataclass(slots=True)
class Group:
    """One group commit of a log device: one `writev` of `buffers` at `offset`, then one `fdatasync`."""

    file: File
    offset: int
    buffers: Sequence[Buffer]
    report_written: bool = False
    """Whether `written` is called after the write, before the sync."""


class LogDevice(Protocol[Item_contra]):
    """Group commit: while one group is written and synced, items queue up, and all of them form the next group.

    Made by `Disk.log_device`. A real device is one thread; in the simulator it is a scheduled event.
    """

    def submit(self, item: Item_contra) -> None:
        """Queue an item. Called on the loop; never blocks. The caller bounds how much it has outstanding."""

    async def close(self) -> None:
        """Write the queued items and report them, then stop."""


class Disk(Protocol):
    """A file system. Paths are absolute strings. Every method may raise OSError (full, missing, no permission)."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        """Open for reading and writing. `create` creates a missing file; with `exclusive` an existing one raises FileExistsError."""

    def lock(self, path: str) -> Callable[[], None]:
        """Take an exclusive lock on a lock file (created if missing), held until the returned function is called or the process ends.

        Raises:
            BlockingIOError: another process holds it.
        """

    def exists(self, path: str) -> bool: ...

    def names(self, path: str) -> list[str]:
        """Names in a directory, sorted."""

    def mkdir(self, path: str) -> None:
        """Create a directory and its parents. An existing one is no error."""

    def rename(self, source: str, target: str) -> None:
        """Replace `target` atomically. Durable after `sync_directory`."""

    def delete(self, path: str) -> None:
        """Delete a file. A missing one is no error."""

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and deletions in the directory durable."""

    def free_space(self, path: str) -> tuple[int, int]:
        """(free bytes, total bytes) of the file system that holds `path`."""

    def log_device(
        self,
        name: str,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None = None,
    ) -> LogDevice[Item]:
        """Start a log device.

        Args:
            name: for the thread and for traces.
            form: called on the device's thread with all queued items, oldest first. Returns the group to write and the number of items
                that it covers, at least one. It chooses file, offset and framing, and must not share state with the loop.
            done: called on the loop after the group's sync, with the items it covered.
            failed: called on the loop if form, write or sync failed, with every queued item. The device accepts no further items.
            written: called on the loop after the write of a group with `Group.report_written`, before `done`: its items survive the end of
                the process, but not of the machine.
        """


class Worker(Protocol):
    """Blocking work off the loop. Each worker runs one function at a time, in order."""

    def run(self, function: Callable[..., Result], *args: Any, answer: asyncio.Future[Result] | None = None) -> asyncio.Future[Result]:
        """Run ``function(*args)`` and return its result. Cancelling the wait does not stop the function.

        Args:
            answer: receives the result and is returned; a new future by default.
        """

    async def close(self) -> None:
        """Wait for the running function, then end the thread."""


class Entropy(Protocol):
    def stream(self, purpose: str) -> random.Random:
        """A separate random stream for each purpose, so that draws for one purpose do not change another."""

    def secret(self, size: int) -> bytes:
        """Random bytes that nobody can predict: for nonces, salts and keys. A stream's generator is no source of secrets, since its next
        numbers follow from those before. In the simulator they are drawn from the seed, as everything is."""


class Trace(Protocol):
    def __call__(self, kind: str, /, **facts: object) -> None:
        """Record one structured fact: `kind` is ``room.event``. Never on the per-entry path."""


def _stay() -> None:
    """The default: no other thread waits for the interpreter."""


@dataclass(frozen=True)
class Host:
    """All ports of a node. Passed to constructors, never global."""

    name: str
    clock: Clock
    network: Network
    disk: Disk
    entropy: Entropy
    trace: Trace
    new_worker: Callable[[str], Worker]
    """Create a named worker, which has one thread; the caller closes it."""
    step_aside: Callable[[], None] = _stay
    """Let the loop and the other threads run first. For functions on workers, between two parts of long work. Returns soon."""
