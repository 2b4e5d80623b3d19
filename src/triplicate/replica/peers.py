"""Which peers are gone: processes that took connections at their address before, where nobody listens any more.

A refused connection comes from a kernel that lives: the process at the address has ended. An address that does not answer says nothing
(slow is not dead), and one that was never reached from here says nothing either: a firewall may refuse for it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from triplicate.errors import TriplicateError
from triplicate.runtime import Host, TaskScope, deadline_after, sleep, timeout_at

PROBE_LIMIT_S = 1.0
"""How long one connection may take; longer says nothing about the peer."""
REFUSALS = 2
"""Refusals in a row until a peer counts as gone: one may meet a listener that is being replaced."""
REMEMBERED_S = 60.0
"""How long a peer counts as reached while nobody looks: waits for it end and begin again, as when the metadata were away."""


@dataclass(slots=True)
class _Peer:
    """What is known of the process at one address."""

    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    reached_s: float | None = None
    """When it was last reached, by the monotonic clock."""
    refusals: int = 0
    trouble: str = ""
    """Why it could neither be reached nor refused the last time; said once."""

    @property
    def is_gone(self) -> bool:
        return self.reached_s is not None and self.refusals >= REFUSALS


class Peers:
    """Connects to the peers whose end somebody waits for, once each per interval, for all waiters together. `run` it beside them.

    Args:
        interval_s: between two connections to one peer.
    """

    def __init__(self, host: Host, interval_s: float) -> None:
        self._host = host
        self._interval_s = interval_s
        self._peers: dict[str, _Peer] = {}
        self._wanted = asyncio.Event()

    async def gone(self, address: str) -> None:
        """Return when a process that took connections at `address`, lately or while this waited, is not there any more.

        Args:
            address: ``host:port``; any other text names no process, and the wait lasts until it is cancelled.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        peer = self._peers.setdefault(address, _Peer())
        peer.waiters.append(waiter)
        self._wanted.set()
        try:
            await waiter
        finally:
            peer.waiters.remove(waiter)

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await self._wanted.wait()
            self._forget_old()
            async with TaskScope("peers") as scope:
                for address, peer in list(self._peers.items()):
                    if peer.waiters:
                        scope.spawn(self._probe(address, peer), name=address)
            if not any(peer.waiters for peer in self._peers.values()):
                self._wanted.clear()
            await sleep(self._host.clock, self._interval_s)

    def _forget_old(self) -> None:
        oldest_s = self._host.clock.monotonic() - REMEMBERED_S
        for address, peer in list(self._peers.items()):
            if not peer.waiters and (peer.reached_s is None or peer.reached_s < oldest_s):
                del self._peers[address]

    async def _probe(self, address: str, peer: _Peer) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            return
        try:
            async with timeout_at(deadline_after(self._host.clock, PROBE_LIMIT_S)):
                transport, _ = await self._host.network.connect(asyncio.Protocol, host.strip("[]"), int(port))
        except ConnectionRefusedError:
            peer.refusals += 1
        except (OSError, TriplicateError, OverflowError, ValueError) as error:
            peer.refusals, before = 0, peer.trouble
            peer.trouble = repr(error)
            if peer.trouble != before:
                self._host.trace("replica.peer_not_probed", address=address, error=peer.trouble)
            return
        else:
            transport.abort()
            peer.reached_s, peer.refusals = self._host.clock.monotonic(), 0
        if peer.is_gone:
            self._host.trace("replica.peer_gone", address=address)
            self._peers.pop(address, None)
            for waiter in peer.waiters:
                if not waiter.done():
                    waiter.set_result(None)
