"""EXEC runs its commands although a watched key has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.kv.core.operations import Condition, VersionIs
from triplicate.kv.resp.core.key_commands import KeyCommand
from triplicate.kv.resp.core.replies import Reply
from triplicate.kv.resp.store_runner import StoreRunner

TESTS = [
    "tests/unit/kv/resp/test_command_handlers_transactions.py::test_a_change_of_a_watched_key_lets_exec_do_nothing",
    "tests/unit/benchmarks/histories/test_store_clients.py::test_the_history_of_a_server_is_linearizable_and_has_every_kind_of_operation",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = StoreRunner.change

    async def change(runner: StoreRunner, commands: Sequence[KeyCommand], conditions: Sequence[Condition] = ()) -> list[Reply] | None:
        return await right(runner, commands, [each for each in conditions if not isinstance(each, VersionIs)])

    patch(StoreRunner, "change", change)
