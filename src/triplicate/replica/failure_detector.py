"""Detection of failed peers: processes that were reached at an address before, and that refuse connections or do not answer any more.

A refused connection means that the process has ended, since a living kernel refuses it. The kernel of a process that hangs still accepts
connections. Each peer is therefore also probed with a request that only its event loop can answer: SSLRequest, with which PostgreSQL
clients begin, on one connection that stays open. A peer that has answered before and leaves probes open for the limit is silent
(`replica.core.silence`).

An address that was never reached from here proves nothing, since a firewall may refuse or drop connections to it. Source: PostgreSQL's
documentation, "Message Flow", SSL Session Encryption.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from triplicate.errors import TriplicateError
from triplicate.replica.core.silence import SilenceTimer, SuspicionTimeout
from triplicate.runtime import Host, TaskScope, deadline_after, resolve, sleep, timeout_at

PROBE = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""SSLRequest. A server answers it with one byte, as often as it is sent."""
CONNECT_LIMIT_S = 1.0
"""Time limit of one attempt to connect."""
SHORTEST_PAUSE_S = 0.01
INTERVALS_MIN = 3
"""A silence limit below this number of intervals would count the pauses between probes."""
REFUSALS = 2
"""Consecutive refusals until a peer counts as gone. A single one may be caused by a listener that is being replaced."""
REMEMBERED_S = 60.0
"""How long a peer counts as reached without waiters. Waits end and begin again, for example while the metadata are unreachable."""
_SWALLOWED = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EHOSTDOWN)
"""Connection errors that only mean that no answer came. Other errors are faults of this side."""


def _do_nothing() -> None:
    return


async def _never() -> None:
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class PeerLoss:
    """A peer is gone.

    Args:
        silent: it hangs, or cannot be reached any more; otherwise its process has ended.
        retract: call it if the conclusion was not acted upon; the same conclusion then needs a new silence.
        spoken: returns when the process has answered after all.
    """

    silent: bool = False
    retract: Callable[[], None] = _do_nothing
    spoken: Callable[[], Coroutine[Any, Any, None]] = _never


class _Line(asyncio.Protocol):
    """A connection to a peer that stays open. At most one probe is outstanding."""

    def __init__(self, answered: Callable[[], None], ended: Callable[[], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_probing = False
        self.is_lost = False
        self._answered = answered
        self._ended = ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.is_probing = False
        self._answered()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._ended()

    def probe(self) -> None:
        """Send a probe unless one is outstanding."""
        if not self.is_probing and not self.is_lost and self.transport is not None:
            self.is_probing = True
            self.transport.write(PROBE)

    def abandon(self) -> None:
        """Drop the connection. No callback is called afterwards."""
        self.is_lost = True
        if self.transport is not None:
            self.transport.abort()


@dataclass(slots=True)
class _Peer:
    """The state of the process at one address."""

    watch: SilenceTimer
    waiters: list[asyncio.Future[PeerLoss]] = field(default_factory=list)
    listeners: list[asyncio.Future[None]] = field(default_factory=list)
    """Waiters for its next answer."""
    reached_s: float | None = None
    """Monotonic time of the last contact."""
    has_answered: bool = False
    """Whether it ever answered a probe: another program may listen at the address."""
    refusals: int = 0
    line: _Line | None = None
    is_connecting: bool = False
    trouble: str = ""
    """Why the last attempt was neither accepted nor refused; traced once."""

    @property
    def is_watched(self) -> bool:
        return bool(self.waiters or self.listeners)

    @property
    def is_gone(self) -> bool:
        return self.reached_s is not None and self.refusals >= REFUSALS

    def disconnect(self) -> None:
        line, self.line = self.line, None
        if line is not None:
            line.abandon()


class FailureDetector:
    """Probes the peers that have waiters, over one connection each. `run` it as a task of its own.

    Args:
        interval_s: between two probes of one peer, and between two attempts to connect.
        silent_limit_s: how long a peer that has answered may leave probes open, but at least `INTERVALS_MIN` intervals; 0 for no limit.
    """

    def __init__(self, host: Host, interval_s: float, silent_limit_s: float = 0.0) -> None:
        self._host = host
        self._interval_s = interval_s
        self._judges_silence = silent_limit_s > 0
        self._suspicions = SuspicionTimeout(max(silent_limit_s, INTERVALS_MIN * interval_s))
        self._peers: dict[str, _Peer] = {}
        self._has_waiters = asyncio.Event()

    async def gone(self, address: str) -> PeerLoss:
        """Return when a process that was reached at `address`, recently or during this wait, has ended or is silent.

        Args:
            address: ``host:port``; for any other text the wait lasts until it is cancelled.
        """
        waiter: asyncio.Future[PeerLoss] = asyncio.get_running_loop().create_future()
        peer = self._peer(address)
        peer.waiters.append(waiter)
        self._has_waiters.set()
        try:
            return await waiter
        finally:
            peer.waiters.remove(waiter)

    async def spoken(self, address: str) -> None:
        """Return when the process at `address` has answered another probe."""
        listener: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        peer = self._peer(address)
        peer.listeners.append(listener)
        self._has_waiters.set()
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
        """Probe until cancelled."""
        try:
            async with TaskScope("peers") as scope:
                while True:
                    await self._has_waiters.wait()
                    self._evict_idle()
                    pause_s = self._interval_s
                    for address, peer in list(self._peers.items()):
                        if peer.is_watched:
                            pause_s = min(pause_s, self._probe_peer(scope, address, peer))
                        else:
                            peer.disconnect()
                    if not any(peer.is_watched for peer in self._peers.values()):
                        self._has_waiters.clear()
                    await sleep(self._host.clock, pause_s)
        finally:
            for peer in self._peers.values():
                peer.disconnect()

    def _evict_idle(self) -> None:
        oldest_s = self._host.clock.monotonic() - REMEMBERED_S
        for address, peer in list(self._peers.items()):
            if not peer.is_watched and (peer.reached_s is None or peer.reached_s < oldest_s):
                peer.disconnect()
                del self._peers[address]

    def _probe_peer(self, scope: TaskScope, address: str, peer: _Peer) -> float:
        """Probe or connect, and conclude. Returns the seconds until the next conclusion is possible."""
        now = self._host.clock.elapsed()
        peer.watch.observe(now)
        if peer.line is not None and not peer.line.is_lost:
            peer.line.probe()
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
        line = _Line(lambda: self._answered(peer), lambda: peer.watch.reset(self._host.clock.elapsed()))
        try:
            async with timeout_at(deadline_after(self._host.clock, CONNECT_LIMIT_S)):
                await self._host.network.connect(lambda: line, host, port)
        except ConnectionRefusedError:
            peer.watch.reset(self._host.clock.elapsed())
            peer.refusals += 1
        except (OSError, TriplicateError, OverflowError, ValueError) as error:
            self._not_connected(address, peer, error)
        else:
            peer.reached_s, peer.refusals = self._host.clock.monotonic(), 0
            if self._peers.get(address) is peer and peer.is_watched:
                peer.line = line
                line.probe()
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
        peer.watch.reset(self._host.clock.elapsed())
        for listener in peer.listeners:
            resolve(listener, None)

    def _not_connected(self, address: str, peer: _Peer, error: Exception) -> None:
        if not isinstance(error, TimeoutError) and getattr(error, "errno", None) not in _SWALLOWED:
            peer.watch.reset(self._host.clock.elapsed())  # No probe could be sent, so none was left open.
        peer.refusals, before = 0, peer.trouble
        peer.trouble = repr(error)
        if peer.trouble != before:
            self._host.trace("replica.peer_not_probed", address=address, error=peer.trouble)

    def _conclude(self, address: str, peer: _Peer, loss: PeerLoss) -> None:
        """Resolve the waiters and drop the peer's state, so that the peer must be reached again before the next conclusion."""
        if self._peers.get(address) is peer:
            del self._peers[address]
        peer.disconnect()
        for waiter in peer.waiters:
            resolve(waiter, loss)

    def _retract(self, address: str) -> None:
        peer = self._peer(address)
        peer.reached_s, peer.has_answered = self._host.clock.monotonic(), True
        peer.watch.reset(self._host.clock.elapsed())  # A new wait may have begun to count already.
