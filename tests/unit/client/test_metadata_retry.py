"""Ledgers are made and recovered although the metadata store is away for a while, and the error says so when it stays away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from triplicate.errors import ConnectionLost, OutcomeUnknown
from triplicate.metadata import InjectedFault

AWAY = InjectedFault(raise_before=ConnectionLost("the store is away"))


@pytest.fixture(autouse=True)
def single_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's own attempts, which take seconds, are tested elsewhere."""
    monkeypatch.setattr("triplicate.metadata.retries.ATTEMPTS", 1)


@contextmanager
def away(cluster: FakeCluster, seconds: float) -> Iterator[None]:
    cluster.store.fault = lambda session, operation, path: AWAY
    timer = asyncio.get_running_loop().call_later(seconds, lambda: setattr(cluster.store, "fault", None))
    try:
        yield
    finally:
        timer.cancel()
        cluster.store.fault = None


@pytest.mark.parametrize("ledger_id", [None, 7])
def test_a_ledger_is_made_when_the_store_comes_back(ledger_id: int | None) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            with away(cluster, 0.3):
                writer = await client.create(ledger_id=ledger_id)
            assert await writer.append(b"0") == 0
            await writer.close()

    run(main())


def test_a_ledger_is_recovered_when_the_store_comes_back() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            writer.abandon()
            with away(cluster, 0.3):
                async with await client.recover(writer.ledger_id) as reader:
                    assert reader.last_add_confirmed == 0

    run(main())


def test_a_store_that_stays_away_ends_both_with_a_word_about_what_was_tried_for_how_long() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, metadata_timeout_s=0.2)) as client:
            writer = await client.create()
            writer.abandon()
            with away(cluster, 10.0):
                with pytest.raises(ConnectionLost, match=r"within 0\.2 s for the creation of a ledger: .*away.*try again"):
                    await client.create()
                with pytest.raises(OutcomeUnknown, match=rf"within 0\.2 s for the recovery of ledger {writer.ledger_id}: .*away") as caught:
                    await client.recover(writer.ledger_id)
                assert caught.value.ledger_id == writer.ledger_id

    run(main())


@pytest.mark.parametrize("ledger_id", [None, 7])
def test_a_ledger_whose_creation_lost_its_answer_again_and_again_is_made_once(ledger_id: int | None) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            made = await client.create(ledger_id=ledger_id)
            path = cluster.metadata.ledgers._path(made.ledger_id + 1)
            lost = iter([InjectedFault(raise_after=ConnectionLost("lost"))] * 3)

            def fault(session: int, operation: str, touched: str) -> InjectedFault | None:
                return next(lost, None) if (operation, touched) == ("create", path) else None

            cluster.store.fault = fault
            again = await client.create(ledger_id=None if ledger_id is None else ledger_id + 1)
            assert next(lost, None) is None, "no answer was lost"
            assert [found async for found in client.ledger_ids()] == [made.ledger_id, again.ledger_id]

    run(main())
