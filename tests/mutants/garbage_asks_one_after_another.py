"""Garbage collection looks up missing ledgers one after another instead of together."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

TESTS = ["tests/unit/bookie/storage/test_garbage_many_missing.py::test_a_round_lasts_for_a_few_answers_however_many_ledgers_are_missing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage import garbage

    async def one_by_one(ledger_ids: Sequence[int], ask: Callable[[int], Coroutine[Any, Any, Any]]) -> list[Any]:
        return [await ask(ledger_id) for ledger_id in ledger_ids]

    patch(garbage, "_for_each_ledger", one_by_one)
