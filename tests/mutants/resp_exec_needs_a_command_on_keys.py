"""EXEC with watched keys fails where no command of the transaction names a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.kv.core.operations import Condition
from triplicate.kv.resp.core.key_commands import KeyCommand
from triplicate.kv.resp.core.replies import Reply
from triplicate.kv.resp.store_runner import StoreRunner

TESTS = [
    "tests/unit/kv/resp/test_command_handlers_transactions.py::test_a_transaction_without_commands_on_keys_heeds_the_watched_keys",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = StoreRunner.change

    async def change(runner: StoreRunner, commands: Sequence[KeyCommand], conditions: Sequence[Condition] = ()) -> list[Reply] | None:
        assert commands[0].operations
        return await right(runner, commands, conditions)

    patch(StoreRunner, "change", change)
