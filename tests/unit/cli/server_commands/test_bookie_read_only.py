"""The command waits until the bookie has changed its registration, and names a bookie that does not."""

from __future__ import annotations

import pytest

from tests.unit.client.cluster import fake_cluster, run
from tests.unit.client.real_cluster import real_cluster
from triplicate.cli.overview.core.cluster_facts import BookieState
from triplicate.cli.server_commands.bookie_read_only import change_request
from triplicate.errors import ArgumentError, RequestTimeout


def test_a_bookie_becomes_read_only_and_writable_again() -> None:
    async def body() -> None:
        async with real_cluster() as cluster:
            assert await change_request(cluster.host, cluster.metadata, "b", True, 20.0) is BookieState.READ_ONLY
            assert sorted(await cluster.metadata.bookies.writable()) == ["a", "c"]
            assert await change_request(cluster.host, cluster.metadata, "b", False, 20.0) is BookieState.WRITABLE
            assert sorted(await cluster.metadata.bookies.writable()) == ["a", "b", "c"]

    run(body())


def test_a_bookie_that_does_not_read_the_request_is_named() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster:
            with pytest.raises(RequestTimeout, match=r"bookie a is still writable 0\.1 s after the request, which stays"):
                await change_request(cluster.host, cluster.metadata, "a", True, 0.1)
            assert await cluster.metadata.read_only_requests.is_requested("a")
            assert await change_request(cluster.host, cluster.metadata, "b", True, 0.0) is BookieState.WRITABLE

    run(body())


def test_an_unknown_bookie_is_refused_and_nothing_is_requested() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster:
            with pytest.raises(ArgumentError, match="the cluster knows no bookie z"):
                await change_request(cluster.host, cluster.metadata, "z", True, 0.1)
            assert await cluster.metadata.read_only_requests.bookie_ids() == []

    run(body())


def test_a_decommissioned_bookie_that_still_runs_stays_read_only() -> None:
    async def body() -> None:
        async with fake_cluster("a") as cluster:
            await cluster.metadata.read_only_requests.request("a", leaving=True)
            await cluster.set_readonly("a", True)
            with pytest.raises(ArgumentError, match="bookie a has no cookie: it was decommissioned"):
                await change_request(cluster.host, cluster.metadata, "a", False, 0.0)
            assert await cluster.metadata.read_only_requests.is_requested("a")

    run(body())
