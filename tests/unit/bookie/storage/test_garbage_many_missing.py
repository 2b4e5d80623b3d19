"""Garbage collection asks the metadata about many ledgers at once, so a round does not last longer with each that is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import NAME, Rig, run_rig
from tests.unit.bookie.index_rig import run_of
from triplicate.bookie.core.ledger_data import LedgerData as StoredState
from triplicate.bookie.storage.garbage import QUESTIONS_AT_ONCE
from triplicate.errors import ConnectionLost
from triplicate.ledger import EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.metadata import TrashedLedger
from triplicate.metadata.trash import encode_trashed

PERIOD_S = 20.0
LEDGERS = 4 * QUESTIONS_AT_ONCE
ANSWER_S = 0.1
METADATA = LedgerMetadata(1, 1, 1, (EnsembleSegment(0, (NAME,)),), LedgerState.OPEN)


async def fill(rig: Rig) -> None:
    """Ledgers that the bookie holds, whose metadata lie in the trash."""
    index = rig.bookie.storage.stored.index
    ids = range(1, LEDGERS + 1)
    metadata = rig.bookie.parts.metadata
    for ledger in ids:
        trashed = encode_trashed(TrashedLedger(ledger, 1, 1e9, METADATA, 0))
        await metadata.tree.create(f"{metadata.own_root}/trash/{ledger:019d}", trashed, parents=True)
    index.add(1, [(9, StoredState(ledger, b"k" * 20)) for ledger in ids], [(9, run_of(ledger, 0, 0, 1, 4096)) for ledger in ids], [])


async def none_expires(limit: int = 0, pages: int = 0) -> int:
    return 0


def test_a_round_lasts_for_a_few_answers_however_many_ledgers_are_missing() -> None:
    async def body(rig: Rig) -> None:
        await fill(rig)
        time = asyncio.get_running_loop().time
        outstanding = most = 0

        def slow(ask: Callable[[int], Coroutine[Any, Any, Any]]) -> Callable[[int], Coroutine[Any, Any, Any]]:
            # As with ZooKeeper: answers take their time, and one does not wait for another.
            async def asked(ledger_id: int) -> Any:
                nonlocal outstanding, most
                outstanding += 1
                most = max(most, outstanding)
                await asyncio.sleep(ANSWER_S)
                outstanding -= 1
                return await ask(ledger_id)

            return asked

        metadata = rig.bookie.parts.metadata
        metadata.ledgers.exists = slow(metadata.ledgers.exists)  # type: ignore[method-assign, assignment]
        metadata.trash.get = slow(metadata.trash.get)  # type: ignore[method-assign, assignment]
        # Which of the records go is another matter.
        metadata.trash.expire = none_expires  # type: ignore[method-assign]
        began = time()
        assert await rig.bookie.collect_garbage() == 0
        assert time() - began < LEDGERS * ANSWER_S / 10
        await asyncio.sleep(PERIOD_S)
        began = time()
        assert await rig.bookie.collect_garbage() == LEDGERS
        assert time() - began < LEDGERS * ANSWER_S / 2
        assert most <= QUESTIONS_AT_ONCE

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


@pytest.mark.parametrize("which", ["exists", "trash"])
def test_one_question_without_an_answer_among_many_keeps_all(which: str) -> None:
    async def body(rig: Rig) -> None:
        await fill(rig)
        assert await rig.bookie.collect_garbage() == 0
        await asyncio.sleep(PERIOD_S)
        metadata = rig.bookie.parts.metadata
        on, name = (metadata.ledgers, "exists") if which == "exists" else (metadata.trash, "get")
        right = getattr(on, name)

        async def one_fails(ledger_id: int) -> Any:
            await asyncio.sleep(0.01)
            if ledger_id == LEDGERS - 1:
                raise ConnectionLost("test")
            return await right(ledger_id)

        setattr(on, name, one_fails)
        with pytest.raises(ConnectionLost):
            await rig.bookie.collect_garbage()
        assert len(rig.bookie.storage.stored.index.ledger_ids()) == LEDGERS
        setattr(on, name, right)
        assert await rig.bookie.collect_garbage() == LEDGERS

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


def test_a_round_asks_about_many_ledgers_that_are_not_in_the_trash_at_once() -> None:
    async def body(rig: Rig) -> None:
        await fill(rig)
        metadata = rig.bookie.parts.metadata
        for ledger_id in range(1, LEDGERS + 1):
            await metadata.tree.delete(f"{metadata.own_root}/trash/{ledger_id:019d}")
        right = metadata.trash.get

        async def slow(ledger_id: int) -> TrashedLedger | None:
            await asyncio.sleep(ANSWER_S)
            return await right(ledger_id)

        metadata.trash.get = slow  # type: ignore[method-assign]
        time = asyncio.get_running_loop().time
        began = time()
        assert await rig.bookie.collect_garbage() == LEDGERS
        assert time() - began < LEDGERS * ANSWER_S / 5

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)
