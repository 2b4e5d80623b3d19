"""Helpers of the tests of decommissions: bookies with cookies that obey requests to be read-only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from tests.unit.client.cluster import FakeCluster, fake_cluster
from triplicate.metadata import Cookie
from triplicate.wire import AddRequest, Request, Status

OBEY_S = 0.01


@asynccontextmanager
async def obedient_cluster(names: str) -> AsyncIterator[FakeCluster]:
    """A cluster whose bookies have cookies, and become read-only when that is requested."""
    async with fake_cluster(names) as cluster:
        for name in names:
            cluster[name].total_bytes = cluster[name].free_bytes = 1 << 40
            await add_cookie(cluster, name)
        task = asyncio.create_task(_obey(cluster))
        try:
            yield cluster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def add_cookie(cluster: FakeCluster, bookie_id: str) -> None:
    await cluster.metadata.cookies.put(Cookie(bookie_id, "journal", ("ledgers",), cluster.metadata.instance_id))


async def _obey(cluster: FakeCluster) -> None:
    while True:
        writable = await cluster.metadata.bookies.writable()
        for name in await cluster.metadata.read_only_requests.bookie_ids():
            if name in writable:
                cluster[name].rules.append(refuse_adds)
                await cluster.set_readonly(name, True)
        await asyncio.sleep(OBEY_S)


def refuse_adds(request: Request) -> Status | None:
    """The rule of a read-only bookie, which still accepts the copies of recoveries."""
    return Status.READ_ONLY if isinstance(request, AddRequest) and not request.recovery else None


async def naming(cluster: FakeCluster, ledger_ids: Iterable[int], bookie_id: str) -> list[int]:
    """The ledgers whose metadata names a bookie."""
    found: list[int] = []
    for ledger_id in ledger_ids:
        metadata = await cluster.metadata_of(ledger_id)
        if any(bookie_id in segment.ensemble for segment in metadata.segments):
            found.append(ledger_id)
    return found
