"""Helpers of the tests of the auditor: a clock that a test moves on, and an auditor whose decisions it asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster
from triplicate.autorecovery import Auditor, AuditorMetrics, CopyPace, LedgerAudits
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.metadata import Cookie
from triplicate.runtime import Clock, Metrics, Timer

AUDITED = AutorecoverySettings(bytes_per_s=0, open_ledger_grace_s=0.2, busy_share=1.0)


class ShiftedClock:
    """The real clock, moved on by a test."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return self._clock.monotonic() + self.ahead_s

    def elapsed(self) -> float:
        return self._clock.elapsed() + self.ahead_s

    def wall_us(self) -> int:
        return self._clock.wall_us() + int(self.ahead_s * 1e6)

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        return self._clock.call_at(when - self.ahead_s, callback, *args)


@dataclass
class Audited:
    """A cluster, and one auditor of it that is elected."""

    cluster: FakeCluster
    client: Client
    auditor: Auditor
    clock: ShiftedClock
    metrics: Metrics

    async def marked(self) -> dict[int, tuple[str, ...]]:
        """The missing bookies by marked ledger."""
        return {mark.ledger_id: mark.missing async for mark in self.cluster.metadata.under_replication.marks()}


async def give_cookie(cluster: FakeCluster, bookie_id: str) -> None:
    await cluster.metadata.cookies.put(Cookie(bookie_id, "/j", ("/l",), cluster.metadata.instance_id))


@asynccontextmanager
async def audited(names: str = "abcd", settings: AutorecoverySettings = AUDITED) -> AsyncIterator[Audited]:
    async with fake_cluster(names) as cluster:
        for name in names:
            await give_cookie(cluster, name)
        clock = ShiftedClock(cluster.host.clock)
        metrics = Metrics()
        async with Client(replace(cluster.host, clock=clock), cluster.metadata, QUICK, metrics) as client:
            counts = AuditorMetrics(metrics)
            audits = LedgerAudits(client, CopyPace(clock, 0), counts, obeys_disable=True)
            await cluster.metadata.under_replication.initialise_lost_bookie_recovery_delay_s(settings.lost_bookie_delay_s)
            yield Audited(cluster, client, Auditor(client, settings, audits, counts), clock, metrics)
