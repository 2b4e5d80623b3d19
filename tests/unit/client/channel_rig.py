"""A pool of channels without a client, and the answers that they deliver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.unit.client.cluster import QUICK, FakeCluster
from tests.waiting import eventually
from triplicate.client.connection.pool import ChannelPool
from triplicate.config import ClientSettings
from triplicate.errors import (
    BookieError,
)
from triplicate.runtime import TaskScope
from triplicate.wire import (
    Response,
)


@dataclass
class Asked:
    """Responses and errors in the order in which they arrived."""

    answers: list[tuple[Any, Response | None, BookieError | None]]

    def __call__(self, token: Any, response: Response | None, error: BookieError | None) -> None:
        self.answers.append((token, response, error))

    async def wait(self, count: int) -> None:
        await eventually(lambda: len(self.answers) >= count)


@asynccontextmanager
async def pool_of(cluster: FakeCluster, settings: ClientSettings = QUICK) -> AsyncIterator[ChannelPool]:
    scope = TaskScope("test")
    pool = ChannelPool(cluster.host, cluster.metadata, settings, scope)
    yield pool
    pool.close()
    await scope.aclose()
