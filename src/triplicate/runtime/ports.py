"""The ports: the only ways in which Triplicate touches time, network, disk, threads and chance.

Client, bookie, metadata, log and replica receive a `Host` and use nothing else. `runtime.real` implements it on the
operating system, `sim` implements it in virtual time from one seed, so the same code runs in both.
Sizes are bytes, times are seconds as float unless a name says otherwise (`_us`, `_ms`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

Buffer = bytes | bytearray | memoryview
Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)
Result = TypeVar("Result")


class Timer(Protocol):
    """What `call_at` returns."""

    def cancel(self) -> None:
        """Forget the call; harmless when it has run."""


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds since some moment; never goes back. The event loop's own time."""

    def elapsed(self) -> float:
        """Seconds since some moment; never goes back, and counts the time in which the machine was suspended, where the operating
        system tells it. For spans that must not seem shorter than they were."""

    def wall_us(self) -> int:
        """Microseconds since the epoch, UTC; may jump."""

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        """Run ``callback(*args)`` on the loop when `monotonic()` reaches `when`."""


class Listener(Protocol):
    """A listening socket."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that peers connect to (the real port where 0 was asked)."""

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
        """Accept connections, one protocol each; port 0 takes a free one.

        Raises:
            OSError: the port is in use.
        """


class File(Protocol):
    """One open file. Methods block; on the loop only what is quick may be called, the rest goes through `Worker`."""

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
        """Reserve space so that later writes neither fail for space nor change the size."""

    def advise_dontneed(self, offset: int, length: int) -> None:
        """The range will not be read soon; drop it from the page cache."""

    def sync(self) -> None:
        """Return when the data is on stable storage (fdatasync)."""

    def close(self) -> None: ...


@dataclass(slots=True)
class Group:
    """What a log device writes at once: one `writev` of `buffers` at `offset`, then one `fdatasync`."""

    file: File
    offset: int
    buffers: Sequence[Buffer]
    tell_written: bool = False
    """Whether somebody wants to hear of the write before the sync."""


class LogDevice(Protocol[Item_contra]):
    """Group commit: while one group is written and synced, items gather; then all that wait form the next group.

    Made by `Disk.log_device`. One thread per device in reality, a scheduled instant in the simulator.
    """

    def submit(self, item: Item_contra) -> None:
        """Queue an item. Called on the loop; never blocks. The caller bounds how much it has outstanding."""

    async def close(self) -> None:
        """Write and answer what is queued, then stop."""


class Disk(Protocol):
    """A file system. Paths are absolute strings. Every method may raise OSError (full, missing, no permission)."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        """Open for reading and writing; `create` makes it, `exclusive` fails with FileExistsError when it is there."""

    def lock(self, path: str) -> Callable[[], None]:
        """Take an exclusive lock on a lock file (created if missing), held until the returned function is called or the process ends.

        Raises:
            BlockingIOError: another process holds it.
        """

    def exists(self, path: str) -> bool: ...

    def names(self, path: str) -> list[str]:
        """Names in a directory, sorted."""

    def mkdir(self, path: str) -> None:
        """Make a directory and its parents; no error when it is there."""

    def rename(self, source: str, target: str) -> None:
        """Replace `target` atomically. Durable after `sync_directory`."""

    def delete(self, path: str) -> None:
        """Delete a file; no error when it is gone."""

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
            form: called on the device's thread with all items that wait, oldest first; returns the group to write and how many
                of the items it covers (at least one). It alone knows file, offset and framing. It must touch nothing that the loop touches.
            done: called on the loop after the group's sync, with the items it covered.
            failed: called on the loop when form, write or sync failed, with every item that waits; the device takes nothing more.
            written: called on the loop after the write of a group that asks for it (`Group.tell_written`) and before `done`: what it holds
                survives the end of the process, not that of the machine.
        """


class Worker(Protocol):
    """Blocking work off the loop. Each worker runs one function at a time, in order."""

    def run(self, function: Callable[..., Result], *args: Any) -> Awaitable[Result]:
        """Run ``function(*args)`` and return its result. Cancelling the wait does not stop the function."""

    async def close(self) -> None:
        """Wait for what runs, then end the thread."""


class Entropy(Protocol):
    def stream(self, purpose: str) -> random.Random:
        """A random stream of its own for each purpose, so that a draw in one place does not shift another."""


class Trace(Protocol):
    def __call__(self, kind: str, /, **facts: object) -> None:
        """Record one structured fact: `kind` is ``room.event``. Never on the per-entry path."""


def _stay() -> None:
    """Where nobody else waits for the interpreter."""


@dataclass(frozen=True)
class Host:
    """Everything a node may touch. Passed to constructors, never global."""

    name: str
    clock: Clock
    network: Network
    disk: Disk
    entropy: Entropy
    trace: Trace
    new_worker: Callable[[str], Worker]
    """Make a worker of its own (one thread) with a name; the maker closes it."""
    step_aside: Callable[[], None] = _stay
    """For functions on workers, between two pieces of long work: the loop and the other threads of the process go first. Returns soon."""
