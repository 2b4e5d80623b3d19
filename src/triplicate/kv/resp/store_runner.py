"""Runs the commands of one client on its store.

The pipelined commands of a received chunk run together: reads alone as one read, and changes with the reads among them as one batch of the
log. The batch is atomic, which is more than Redis promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from triplicate.errors import ArgumentError, SumOutOfRange, WrongValue
from triplicate.kv.core.operations import Add, Condition, Operation, Outcome, StoreBatch, VersionIs
from triplicate.kv.core.store_interface import LINEARIZABLE, KeyValueStore
from triplicate.kv.resp.core.command_errors import NOT_AN_INTEGER, OVERFLOW, CommandError
from triplicate.kv.resp.core.key_commands import APPLIED, ComputedCommand, KeyCommand, check_sizes, outcome_of_record, too_long
from triplicate.kv.resp.core.replies import ErrorReply, Reply
from triplicate.kv.resp.store_session import StoreSession, refusal_of
from triplicate.runtime import own_task

ATTEMPTS_MAX = 64
"""Of a computed change, whose key others may change meanwhile."""
RUN_OPERATIONS_MAX = 512
"""Pipelined commands run together while they have no more operations than this."""
RUN_BYTES_MAX = 1024 * 1024
"""And no more bytes in keys and values."""
RUN_READS_MAX = 64
"""And no more values to read, which are in memory together."""


class StoreRunner:
    """The commands of one client on one store."""

    def __init__(self, store: KeyValueStore, session: StoreSession) -> None:
        self._store = store
        self._session = session

    async def run(self, commands: Sequence[KeyCommand]) -> list[Reply]:
        """Run commands in their order. Returns their replies."""
        replies: list[Reply] = []
        for together in _parts(commands):
            try:
                replies += await self._run_together(together)
            except ArgumentError:
                # The sum of all is beyond a limit that each may keep, and nothing was changed.
                for command in together:
                    try:
                        replies += await self._run_together([command])
                    except Exception as error:  # noqa: BLE001  the command fails alone
                        replies.append(refusal_of(error, self._store))
            except Exception as error:  # noqa: BLE001  these commands fail alone
                replies += [refusal_of(error, self._store)] * len(together)
        return replies

    async def run_one(self, command: KeyCommand) -> Reply:
        """Run a command. Returns its reply."""
        try:
            return (await self._run_together([command]))[0]
        except Exception as error:  # noqa: BLE001  the command fails alone
            return refusal_of(error, self._store)

    async def _run_together(self, commands: list[KeyCommand]) -> list[Reply]:
        """Raises StoreError; ArgumentError: nothing was changed."""
        for command in commands:
            if not command.is_read:
                return await self.change(commands, commands[0].conditions) or [commands[0].render((), 0)]
        return await self.read(commands)

    def get_at_once(self, command: KeyCommand) -> tuple[Reply] | None:
        """The reply of a read of one key, if the leader can give it without waiting. No change of the same client may be under way."""
        if len(command.operations) != 1 or self._session.read_level is not LINEARIZABLE or not self._store.is_leader:
            return None
        try:
            found = self._store.try_get(command.operations[0].key)
        except Exception as error:  # noqa: BLE001  the command fails alone
            return (refusal_of(error, self._store),)
        if found is None:
            return None
        self._session.see(found.position, found.age_s)
        return (command.render((outcome_of_record(found.record),), found.time_ms),)

    async def read(self, commands: Sequence[KeyCommand]) -> list[Reply]:
        """Run reads at the level of the session, all at one moment. Raises StoreError."""
        keys = [operation.key for command in commands for operation in command.operations]
        await own_task()  # The store may wait with a limit of time.
        found = await self._store.get_many(keys, self._session.read_level)
        self._session.see(found.position, found.age_s)
        return self._replies(commands, [outcome_of_record(record) for record in found.records], found.time_ms)

    async def change(self, commands: Sequence[KeyCommand], conditions: Sequence[Condition] = ()) -> list[Reply] | None:
        """Run commands as one batch, of which there are none if only the conditions matter. Returns None if they did not hold.

        Raises:
            StoreError.
        """
        operations: Sequence[Operation]
        if len(commands) == 1:
            operations = commands[0].operations
        else:
            operations = [operation for command in commands for operation in command.operations]
        result = await self._store.submit(StoreBatch(operations, conditions, True))
        self._session.see(result.position)
        return self._replies(commands, result.outcomes, result.time_ms) if result.held else None

    def _replies(self, commands: Sequence[KeyCommand], outcomes: Sequence[Outcome], time_ms: int) -> list[Reply]:
        if len(commands) == 1:
            return [self._reply(commands[0], outcomes, time_ms)]
        replies: list[Reply] = []
        at = 0
        for command in commands:
            end = at + len(command.operations)
            replies.append(self._reply(command, outcomes[at:end], time_ms))
            at = end
        return replies

    def _reply(self, command: KeyCommand, outcomes: Sequence[Outcome], time_ms: int) -> Reply:
        for operation, outcome in zip(command.operations, outcomes, strict=True):
            if outcome.error is not None:
                return self._failure(operation, outcome)
        return command.render(outcomes, time_ms)

    def _failure(self, operation: Operation, outcome: Outcome) -> ErrorReply:
        if isinstance(outcome.error, SumOutOfRange):
            return ErrorReply(OVERFLOW)
        if isinstance(outcome.error, WrongValue):
            return ErrorReply(NOT_AN_INTEGER if isinstance(operation, Add) else str(too_long(self._store.limits)))
        assert outcome.error is not None, "the operation failed"
        return refusal_of(outcome.error, self._store)

    async def compute(self, command: ComputedCommand) -> Reply:
        """Run a change that is computed from the present value. Raises StoreError, CommandError."""
        limits = self._store.limits
        for _ in range(ATTEMPTS_MAX):
            found = await self._store.get(command.key, LINEARIZABLE)
            self._session.see(found.position, found.age_s)
            operation, reply = command.compute(found.record, limits)
            if operation is None:
                return reply
            check_sizes((operation,), limits)
            version = 0 if found.record is None else found.record.version
            result = await self._store.submit(StoreBatch((operation,), (VersionIs(command.key, version),)))
            self._session.see(result.position)
            if result.held:
                return int(result.outcomes[0].applied) if reply is APPLIED else reply
        raise CommandError(f"TRYAGAIN the key was changed by others {ATTEMPTS_MAX} times meanwhile; nothing was changed")

    async def versions(self, keys: Sequence[bytes]) -> list[int]:
        """The present versions of keys; 0 for one that does not exist. Raises StoreError."""
        found = await self._store.get_many(keys, LINEARIZABLE)
        self._session.see(found.position, found.age_s)
        return [0 if record is None else record.version for record in found.records]


def _parts(commands: Sequence[KeyCommand]) -> Iterator[list[KeyCommand]]:
    """The commands in parts that run together: a command with conditions stands alone."""
    for is_alone, group in groupby(commands, lambda command: bool(command.conditions)):
        if is_alone:
            yield from ([command] for command in group)
        else:
            yield list(group)
