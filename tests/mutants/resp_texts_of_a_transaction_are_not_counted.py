"""The texts of a transaction's ECHO and PING have no limit together, and wait in memory for EXEC."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.resp.command_handlers import CommandHandlers
from triplicate.kv.resp.core.connection_commands import ConnectionCommand
from triplicate.kv.resp.core.key_commands import KeyCommand

TESTS = ["tests/unit/kv/resp/test_command_handlers_transactions.py::test_the_texts_of_a_transaction_are_limited_like_its_values"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = CommandHandlers.queue

    def queue(handlers: CommandHandlers, command: KeyCommand | ConnectionCommand, size_bytes: int) -> None:
        right(handlers, command, size_bytes if isinstance(command, KeyCommand) else 0)

    patch(CommandHandlers, "queue", queue)
