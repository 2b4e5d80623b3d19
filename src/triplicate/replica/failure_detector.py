"""Detects failed peers: processes that were reached at an address before, and that now refuse connections or do not answer.

A refused connection means that the process has ended, because a running kernel has refused it. The kernel of a process that hangs still
accepts connections. Each peer is therefore also probed with a request that only its event loop can answer: GSSENCRequest of PostgreSQL's
protocol, by which a client asks for encryption by GSSAPI, on one connection that stays open. A peer that has answered before, and leaves
probes unanswered for the limit, is silent (`replica.core.silence`).

Waits end and begin again while the metadata are unreachable, and this node may have been cut off itself meanwhile. A peer is therefore
observed for a while after its last waiter. When a wait begins, the peer must also leave a probe on a new connection unanswered, or refuse
one. A conclusion that was not acted upon leaves the silence as it was.

An address that was never reached from here proves nothing, because a firewall may refuse or drop connections to it. Source: PostgreSQL's
documentation, "Message Flow", GSSAPI Session Encryption.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from triplicate.errors import TriplicateError
from triplicate.replica.core.silence import AnswerDelays, SilenceTimer, SuspicionTimeout
from triplicate.runtime import Host, TaskScope, deadline_after, resolve, timeout_at

PROBE = b"\x00\x00\x00\x08\x04\xd2\x16\x30"
"""GSSENCRequest. A server without GSSAPI refuses it by one byte, as often as it is sent, also where it requires TLS."""
CONNECT_LIMIT_S = 1.0
"""Time limit of one attempt to connect."""
SHORTEST_PAUSE_S = 0.01
INTERVALS_MIN = 3
"""Shortest silence limit, in intervals. A lower one would count the pauses between probes as silence."""
REFUSALS = 2
"""Consecutive refusals after which a peer is gone. A listener that is being replaced may cause a single one."""
LINGER_S = 15.0
"""A peer is still observed for this time after its last waiter. It is longer than an operation on the metadata."""
CONFIRMING_INTERVALS = 2
"""A peer that was silent when a wait began must remain so for this number of intervals, or longer if it has answered late before."""
REMEMBERED_S = 60.0
"""Without waiters, a peer counts as reached for this time."""
_UNANSWERED = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EHOSTDOWN)
"""Connection errors that mean that no answer arrived. Other errors are faults of this side."""


def _do_nothing() -> None:
    return


async def _never() -> None:
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class PeerLoss:
    """The conclusion that a peer is gone.

    Args:
        silent: whether it hangs or cannot be reached; otherwise its process has ended.
        retract: to call if the conclusion was not acted upon. The next conclusion then requires a new silence.
        spoken: waits until the process has answered after all.
    """

    silent: bool = False
    retract: Callable[[], None] = _do_nothing
    spoken: Callable[[], Coroutine[Any, Any, None]] = _never


class _ProbeConnection(asyncio.Protocol):
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
        """Abort the connection. No callback is called afterwards."""
        self.is_lost = True
        if self.transport is not None:
            self.transport.abort()


@dataclass(slots=True)
class _Peer:
    """The state of the process at one address."""

    silence: SilenceTimer
    delays: AnswerDelays = field(default_factory=AnswerDelays)
    waiters: list[asyncio.Future[PeerLoss]] = field(default_factory=list)
    listeners: list[asyncio.Future[None]] = field(default_factory=list)
    """Futures that its next answer resolves."""
    reached_s: float | None = None
    """Monotonic time of the last contact."""
    has_answered: bool = False
    """Whether it has ever answered a probe. Another program may listen at the address."""
    refusals: int = 0
    connection: _ProbeConnection | None = None
    attempt: asyncio.Task[None] | None = None
    """The last attempt to connect."""
    attempted_s: float = float("-inf")
    connect_error: str = ""
    """The error of the last attempt to connect that was neither accepted nor refused; traced once."""
    awaited_s: float = float("-inf")
    """When the last waiter came. An earlier refusal may be older than the process that this waiter asks for."""
    observed_until_s: float = float("-inf")
    """Monotonic time until which it is observed without a waiter."""

    def is_observed(self, now_s: float) -> bool:
        """Whether it is to be probed."""
        return bool(self.waiters or self.listeners) or (self.reached_s is not None and now_s < self.observed_until_s)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody would get a conclusion. A wait that was cancelled has not necessarily ended yet."""
        return any(not waiter.done() for waiter in self.waiters)

    @property
    def is_connecting(self) -> bool:
        return self.attempt is not None and not self.attempt.done()

    @property
    def is_gone(self) -> bool:
        return self.reached_s is not None and self.refusals >= REFUSALS and self.attempted_s >= self.awaited_s

    def disconnect(self) -> None:
        """Abandon the connection and the attempt to make one. The next attempt may follow at once."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.abandon()
        if self.attempt is not None:
            self.attempt.cancel()
        self.attempt, self.attempted_s = None, float("-inf")


class FailureDetector:
    """Probes the peers that have waiters, over one connection each. `run` must run as a task of its own.

    Args:
        interval_s: between two probes of one peer, and between two attempts to connect.
        silent_limit_s: time for which a peer that has answered may leave probes unanswered, at least `INTERVALS_MIN` intervals; 0 for no
            limit. It is longer for a peer that answered late before, see `AnswerDelays`.
    """

    def __init__(self, host: Host, interval_s: float, silent_limit_s: float = 0.0) -> None:
        self._host = host
        self._interval_s = interval_s
        self._judges_silence = silent_limit_s > 0
        self._suspicions = SuspicionTimeout(max(silent_limit_s, INTERVALS_MIN * interval_s))
        self._peers: dict[str, _Peer] = {}
        self._wake = asyncio.Event()
        """Set when a peer is to be probed before the interval is over."""

    async def gone(self, address: str) -> PeerLoss:
        """Wait until a process that was reached at `address`, recently or during this wait, has ended or is silent.

        Args:
            address: ``host:port``. For any other text the wait ends only by cancellation.
        """
        waiter: asyncio.Future[PeerLoss] = asyncio.get_running_loop().create_future()
        peer = self._peer(address)
        if not peer.waiters:
            self._begin_wait(peer)
        peer.awaited_s = self._host.clock.elapsed()
        peer.waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                waiter.result().retract()  # It came together with the cancellation, and nobody gets it.
            raise
        finally:
            peer.waiters.remove(waiter)
            peer.observed_until_s = self._host.clock.monotonic() + LINGER_S

    def _begin_wait(self, peer: _Peer) -> None:
        """Probe a peer at once. A silence that was observed while nobody waited must be confirmed."""
        now = self._host.clock.elapsed()
        peer.silence.observe(now)
        limit_s = self._limit_s(peer, now)
        unconfirmed_s = limit_s - min(limit_s, peer.delays.limit_s(now, CONFIRMING_INTERVALS * self._interval_s))
        if peer.silence.silent_s > unconfirmed_s:
            peer.silence.resume(now, unconfirmed_s)
            peer.disconnect()
        self._wake.set()

    def _limit_s(self, peer: _Peer, now: float) -> float:
        """The silence that the next conclusion about a peer needs."""
        return peer.delays.limit_s(now, self._suspicions.limit_s(now))

    async def spoken(self, address: str) -> None:
        """Wait until the process at `address` has answered another probe."""
        listener: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        peer = self._peer(address)
        peer.listeners.append(listener)
        self._wake.set()
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
                    self._wake.clear()
                    self._evict_idle()
                    pause_s: float | None = None
                    now_s = self._host.clock.monotonic()
                    for address, peer in list(self._peers.items()):
                        if peer.is_observed(now_s):
                            pause_s = min(self._interval_s if pause_s is None else pause_s, self._probe_peer(scope, address, peer))
                        else:
                            peer.disconnect()
                            peer.refusals = 0  # They are too old to be counted with the next one.
                    with suppress(TimeoutError):
                        async with timeout_at(deadline_after(self._host.clock, pause_s)):
                            await self._wake.wait()
        finally:
            for peer in self._peers.values():
                peer.disconnect()

    def _evict_idle(self) -> None:
        now_s = self._host.clock.monotonic()
        oldest_s = now_s - REMEMBERED_S
        for address, peer in list(self._peers.items()):
            if not peer.is_observed(now_s) and (peer.reached_s is None or peer.reached_s < oldest_s):
                peer.disconnect()
                del self._peers[address]

    def _probe_peer(self, scope: TaskScope, address: str, peer: _Peer) -> float:
        """Probe a peer or connect to it, and conclude if it is silent. Returns the seconds until the next conclusion is possible."""
        now = self._host.clock.elapsed()
        since_attempt_s, pause_s = now - peer.attempted_s, self._interval_s
        peer.silence.observe(now)
        if peer.connection is not None and not peer.connection.is_lost:
            peer.connection.probe()
        elif not peer.is_connecting and since_attempt_s < self._interval_s / 2:
            # Two refusals at once would say no more than one.
            pause_s = max(self._interval_s / 2 - since_attempt_s, SHORTEST_PAUSE_S)
        elif not peer.is_connecting:
            host, _, port = address.rpartition(":")
            if host and port.isdecimal():
                peer.attempted_s = now
                peer.attempt = scope.spawn(self._connect(address, peer, host.strip("[]"), int(port)), name=address)
        if not self._judges_silence or not peer.has_answered or not peer.is_awaited:
            return pause_s
        silent_s = peer.silence.silent_s
        remaining_s = self._limit_s(peer, now) - silent_s
        if remaining_s <= 0:
            self._suspicions.conclude(now)
            self._host.trace("replica.peer_silent", address=address, seconds=round(silent_s, 3))
            self._conclude(address, peer, PeerLoss(True, lambda: self._retract(address, peer, now), lambda: self.spoken(address)))
        return max(min(remaining_s, pause_s), SHORTEST_PAUSE_S)

    async def _connect(self, address: str, peer: _Peer, host: str, port: int) -> None:
        connection = _ProbeConnection(lambda: self._answered(peer), lambda: self._ended(peer))
        try:
            async with timeout_at(deadline_after(self._host.clock, CONNECT_LIMIT_S)):
                await self._host.network.connect(lambda: connection, host, port)
        except ConnectionRefusedError:
            peer.silence.reset(self._host.clock.elapsed())
            peer.refusals += 1
        except (OSError, TriplicateError, OverflowError, ValueError) as error:
            self._not_connected(address, peer, error)
        else:
            peer.reached_s, peer.refusals = self._host.clock.monotonic(), 0
            if self._peers.get(address) is peer and peer.is_observed(peer.reached_s):
                peer.connection = connection
                connection.probe()
            else:
                connection.abandon()
        # While nobody waits, as between two waits of an election, the conclusion would be lost. The next attempt draws it, also for a
        # waiter that came during this one: a process that started again may have listened, and led, since.
        if peer.is_gone and peer.is_awaited:
            self._conclude_end(address, peer)

    def _answered(self, peer: _Peer) -> None:
        peer.has_answered = True
        peer.reached_s = self._host.clock.monotonic()
        now = self._host.clock.elapsed()
        peer.silence.observe(now)
        peer.delays.answered(now, max(0.0, peer.silence.silent_s - self._interval_s))
        peer.silence.reset(now)
        for listener in peer.listeners:
            resolve(listener, None)

    def _ended(self, peer: _Peer) -> None:
        """The connection has ended by the peer's doing: perhaps its process has."""
        peer.silence.reset(self._host.clock.elapsed())
        self._wake.set()

    def _not_connected(self, address: str, peer: _Peer, error: Exception) -> None:
        if not isinstance(error, TimeoutError) and getattr(error, "errno", None) not in _UNANSWERED:
            peer.silence.reset(self._host.clock.elapsed())  # No probe could be sent, so none is unanswered.
        peer.refusals, before = 0, peer.connect_error
        peer.connect_error = repr(error)
        if peer.connect_error != before:
            self._host.trace("replica.peer_not_probed", address=address, error=peer.connect_error)

    def _conclude_end(self, address: str, peer: _Peer) -> None:
        self._host.trace("replica.peer_gone", address=address)
        self._conclude(address, peer, PeerLoss(False, lambda: self._retract(address, peer)))

    def _conclude(self, address: str, peer: _Peer, loss: PeerLoss) -> None:
        """Resolve the waiters and drop the peer's state, so that the peer must be reached again before the next conclusion."""
        if self._peers.get(address) is peer:
            del self._peers[address]
        peer.disconnect()
        for waiter in peer.waiters:
            resolve(waiter, loss)

    def _retract(self, address: str, concluded: _Peer, silent_at: float | None = None) -> None:
        """Take back a conclusion that was not acted upon. Its silence and its refusals count on, unless the peer has answered since.

        Args:
            concluded: the state of the peer at the conclusion.
            silent_at: elapsed time of the conclusion that it is silent.
        """
        if silent_at is not None:
            self._suspicions.retract(silent_at)
        peer, now_s = self._peer(address), self._host.clock.monotonic()
        if not peer.has_answered:
            if peer.reached_s is None:
                peer.refusals = concluded.refusals
            peer.reached_s, peer.has_answered, peer.delays = now_s, concluded.has_answered, concluded.delays
            peer.silence.resume(self._host.clock.elapsed(), concluded.silence.silent_s)
        peer.observed_until_s = now_s + LINGER_S
        self._wake.set()
