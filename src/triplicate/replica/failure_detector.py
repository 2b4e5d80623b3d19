"""Which peers are gone: processes that answered at their address before, where nobody listens any more, or nobody answers.

A refused connection comes from a kernel that lives: the process at the address has ended. A process that hangs still has its kernel accept
connections, so each peer is also asked something that only its event loop can answer: whether it would encrypt, the question with which
clients of PostgreSQL begin (SSLRequest), on one connection that is kept. One that has answered and then leaves the questions open for the
limit is silent (`replica.silence`).

An address that was never reached from here says nothing, as a firewall may refuse or swallow for it. Source: PostgreSQL's documentation,
"Message Flow", SSL Session Encryption.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from triplicate.errors import TriplicateError
from triplicate.replica.core.silence import SilenceTimer, SuspicionTimeout
from triplicate.runtime import Host, TaskScope, deadline_after, sleep, timeout_at

QUESTION = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""SSLRequest. A server answers it with one byte, as often as it is sent."""
CONNECT_LIMIT_S = 1.0
"""How long one connection may take; then another is tried."""
SHORTEST_PAUSE_S = 0.01
INTERVALS_MIN = 3
"""A limit of silence below this number of intervals would count the pauses between questions."""
REFUSALS = 2
"""Refusals in a row until a peer counts as gone: one may meet a listener that is being replaced."""
REMEMBERED_S = 60.0
"""How long a peer counts as reached while nobody looks: waits for it end and begin again, as when the metadata were away."""
_SWALLOWED = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EHOSTDOWN)
"""Errors of connecting that say no more than that nothing came back. Others tell of trouble on this side."""


def _do_nothing() -> None:
    return


async def _never() -> None:
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class PeerLoss:
    """A peer is gone.

    Args:
        silent: it hangs, or cannot be reached any more; else its process has ended.
        retract: to be called where nothing could be made of it: the same may be concluded again, from a new silence.
        spoken: returns when the process has answered all the same.
    """

    silent: bool = False
    retract: Callable[[], None] = _do_nothing
    spoken: Callable[[], Coroutine[Any, Any, None]] = _never


class _Line(asyncio.Protocol):
    """A connection to a peer, kept for one question after the other."""

    def __init__(self, answered: Callable[[], None], ended: Callable[[], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_asking = False
        self.is_lost = False
        self._answered = answered
        self._ended = ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.is_asking = False
        self._answered()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._ended()

    def ask(self) -> None:
        """Send the question, unless one is out."""
        if not self.is_asking and not self.is_lost and self.transport is not None:
            self.is_asking = True
            self.transport.write(QUESTION)

    def abandon(self) -> None:
        """Drop the connection; nothing is called any more."""
        self.is_lost = True
        if self.transport is not None:
            self.transport.abort()


@dataclass(slots=True)
class _Peer:
    """What is known of the process at one address."""

    watch: SilenceTimer
    waiters: list[asyncio.Future[PeerLoss]] = field(default_factory=list)
    listeners: list[asyncio.Future[None]] = field(default_factory=list)
    """Who waits for its next answer."""
    reached_s: float | None = None
    """When it was last reached, by the monotonic clock."""
    has_answered: bool = False
    """Whether it ever answered a question: something else may listen there."""
    refusals: int = 0
    line: _Line | None = None
    is_connecting: bool = False
    trouble: str = ""
    """Why it could neither be reached nor refused the last time; said once."""

    @property
    def is_watched(self) -> bool:
        return bool(self.waiters or self.listeners)

    @property
    def is_gone(self) -> bool:
        return self.reached_s is not None and self.refusals >= REFUSALS

    def hang_up(self) -> None:
        line, self.line = self.line, None
        if line is not None:
            line.abandon()


class FailureDetector:
    """Asks the peers whose end somebody waits for, over one connection each, for all waiters together. `run` it beside them.

    Args:
        interval_s: between two questions to one peer, and two attempts to connect.
        silent_limit_s: how long a peer that has answered may leave questions open, but at least `INTERVALS_MIN` intervals; 0 waits for
            ever.
    """

    def __init__(self, host: Host, interval_s: float, silent_limit_s: float = 0.0) -> None:
        self._host = host
        self._interval_s = interval_s
        self._judges_silence = silent_limit_s > 0
        self._suspicions = SuspicionTimeout(max(silent_limit_s, INTERVALS_MIN * interval_s))
        self._peers: dict[str, _Peer] = {}
        self._wanted = asyncio.Event()

    async def gone(self, address: str) -> PeerLoss:
        """Return when a process that was reached at `address`, lately or while this waited, is not there any more, or silent.

        Args:
            address: ``host:port``; any other text names no process, and the wait lasts until it is cancelled.
        """
        waiter: asyncio.Future[PeerLoss] = asyncio.get_running_loop().create_future()
        peer = self._peer(address)
        peer.waiters.append(waiter)
        self._wanted.set()
        try:
            return await waiter
        finally:
            peer.waiters.remove(waiter)

    async def spoken(self, address: str) -> None:
        """Return when the process at `address` has answered a question once more."""
        listener: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        peer = self._peer(address)
        peer.listeners.append(listener)
        self._wanted.set()
        try:
            await listener
        finally:
            peer.listeners.remove(listener)

    def _peer(self, address: str) -> _Peer:
        peer = self._peers.get(address)
        if peer is None:
            peer = self._peers[address] = _Peer(SilenceTimer(self._interval_s))
        return peer

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            async with TaskScope("peers") as scope:
                while True:
                    await self._wanted.wait()
                    self._forget_old()
                    pause_s = self._interval_s
                    for address, peer in list(self._peers.items()):
                        if peer.is_watched:
                            pause_s = min(pause_s, self._look(scope, address, peer))
                        else:
                            peer.hang_up()
                    if not any(peer.is_watched for peer in self._peers.values()):
                        self._wanted.clear()
                    await sleep(self._host.clock, pause_s)
        finally:
            for peer in self._peers.values():
                peer.hang_up()

    def _forget_old(self) -> None:
        oldest_s = self._host.clock.monotonic() - REMEMBERED_S
        for address, peer in list(self._peers.items()):
            if not peer.is_watched and (peer.reached_s is None or peer.reached_s < oldest_s):
                peer.hang_up()
                del self._peers[address]

    def _look(self, scope: TaskScope, address: str, peer: _Peer) -> float:
        """Ask, or connect, and conclude. Returns in how many seconds there may be more to conclude."""
        now = self._host.clock.elapsed()
        peer.watch.look(now)
        if peer.line is not None and not peer.line.is_lost:
            peer.line.ask()
        elif not peer.is_connecting:
            host, _, port = address.rpartition(":")
            if host and port.isdecimal():
                peer.is_connecting = True
                scope.spawn(self._connect(address, peer, host.strip("[]"), int(port)), name=address)
        if not self._judges_silence or not peer.has_answered:
            return self._interval_s
        silent_s = peer.watch.silent_s
        left_s = self._suspicions.limit_s(now) - silent_s
        if left_s <= 0:
            self._suspicions.conclude(now)
            self._host.trace("replica.peer_silent", address=address, seconds=round(silent_s, 3))
            self._conclude(address, peer, PeerLoss(True, lambda: self._retract(address), lambda: self.spoken(address)))
        return max(left_s, SHORTEST_PAUSE_S)

    async def _connect(self, address: str, peer: _Peer, host: str, port: int) -> None:
        line = _Line(lambda: self._answered(peer), lambda: peer.watch.heard(self._host.clock.elapsed()))
        try:
            async with timeout_at(deadline_after(self._host.clock, CONNECT_LIMIT_S)):
                await self._host.network.connect(lambda: line, host, port)
        except ConnectionRefusedError:
            peer.watch.heard(self._host.clock.elapsed())
            peer.refusals += 1
        except (OSError, TriplicateError, OverflowError, ValueError) as error:
            self._not_connected(address, peer, error)
        else:
            peer.reached_s, peer.refusals = self._host.clock.monotonic(), 0
            if self._peers.get(address) is peer and peer.is_watched:
                peer.line = line
                line.ask()
            else:
                line.abandon()
        finally:
            peer.is_connecting = False
        if peer.is_gone:
            self._host.trace("replica.peer_gone", address=address)
            self._conclude(address, peer, PeerLoss())

    def _answered(self, peer: _Peer) -> None:
        peer.has_answered = True
        peer.reached_s = self._host.clock.monotonic()
        peer.watch.heard(self._host.clock.elapsed())
        for listener in peer.listeners:
            if not listener.done():
                listener.set_result(None)

    def _not_connected(self, address: str, peer: _Peer, error: Exception) -> None:
        if not isinstance(error, TimeoutError) and getattr(error, "errno", None) not in _SWALLOWED:
            peer.watch.heard(self._host.clock.elapsed())  # Nothing could be asked, so nothing was left open.
        peer.refusals, before = 0, peer.trouble
        peer.trouble = repr(error)
        if peer.trouble != before:
            self._host.trace("replica.peer_not_probed", address=address, error=peer.trouble)

    def _conclude(self, address: str, peer: _Peer, loss: PeerLoss) -> None:
        """Tell the waiters. What is known of the peer is forgotten, so that it must be reached again before the same is concluded."""
        if self._peers.get(address) is peer:
            del self._peers[address]
        peer.hang_up()
        for waiter in peer.waiters:
            if not waiter.done():
                waiter.set_result(loss)

    def _retract(self, address: str) -> None:
        peer = self._peer(address)
        peer.reached_s, peer.has_answered = self._host.clock.monotonic(), True
        peer.watch.heard(self._host.clock.elapsed())  # While nothing was made of it, it may have been watched already.
