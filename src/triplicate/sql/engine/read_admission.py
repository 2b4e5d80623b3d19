"""Admits the reads of one session at the level that it has set.

A read is admitted before its snapshot is taken, and confirmed afterwards: a process that was suspended in between does not answer from a
snapshot that has become too old meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SqlError
from triplicate.runtime import Clock, fail, shielded
from triplicate.sql.core.interface import Prepared, SchemaMoved
from triplicate.sql.core.read_levels import (
    DEFAULT_READS,
    ReadLevel,
    ReadSettings,
    not_at_position,
    not_recent_enough,
    only_leader_answers,
)
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.engine.copy_progress import CopyProgress
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.executor.reader_pool import ReaderCheckout, ReaderPool

AGE_FUNCTION: Final = "triplicate_read_age"
"""A statement with this function is answered when the copy's age is known, or cannot be known in time."""
SNAPSHOT_ATTEMPTS: Final = 10
"""How often a snapshot is taken again that was taken too late, before the read is refused."""
POSITION_FUNCTION: Final = "triplicate_position"
AGE_LIMIT_S: Final = 1.0
"""Longest wait for the copy's age."""
_CONFIRMED_BY_LEADER: Final = (ReadLevel.DEFAULT, ReadLevel.LINEARIZABLE, ReadLevel.BOUNDED)


class LevelledDatabase(Protocol):
    """The part of a database that decides about reads."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> NodeSettings: ...

    @property
    def leader_hint(self) -> str | None: ...

    @property
    def schema_version(self) -> int: ...

    @property
    def pool(self) -> ReaderPool: ...

    @property
    def progress(self) -> CopyProgress: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def as_of(self) -> int | None: ...


class ReadAdmission:
    """Admits and confirms the reads of one session.

    Args:
        waits: its waits are added to these.

    Attributes:
        settings: the level of the next snapshot.
        snapshot_schema: a version of the schema that the last snapshot has, or one that is older.
    """

    def __init__(self, database: LevelledDatabase, waits: StatementWaits, settings: ReadSettings = DEFAULT_READS) -> None:
        self._database = database
        self._waits = waits
        self.settings = settings
        self.snapshot_schema = -1
        self._waiter: asyncio.Future[None] | None = None

    def is_plain(self, leadership: Leadership | None, sql: str) -> bool:
        """Whether a read needs no admission: on the leader every confirmed read, on others one at a level that asks for nothing."""
        level = self.settings.level
        if self._database.as_of is not None:
            return True  # The past is the same at every level.
        if leadership is not None:
            return level is not ReadLevel.SESSION and level is not ReadLevel.ANY
        return level in (ReadLevel.DEFAULT, ReadLevel.ANY) and AGE_FUNCTION not in sql.lower()

    async def admit(self, leadership: Leadership | None, sql: str = "") -> float:
        """Wait until this copy may answer a read whose snapshot is taken next.

        Returns:
            The time, by the clock of the copy's progress, until which the snapshot must have been taken.

        Raises:
            SqlError: 25006, only the leader may answer; 55P03, the copy is not recent enough in time; the reason of `interrupt`.
        """
        settings = self.settings
        if self._database.as_of is not None:
            return float("inf")
        if settings.level is ReadLevel.SESSION:
            await self._reach(settings.position)
        if leadership is not None:
            if POSITION_FUNCTION in sql.lower():
                leadership.make_readable()
            return float("inf")
        if settings.level is ReadLevel.LINEARIZABLE:
            raise only_leader_answers(self._database.name, self._database.leader_hint)
        if settings.level is ReadLevel.BOUNDED:
            return await self._be_recent(settings.max_staleness_s)
        if AGE_FUNCTION in sql.lower():
            await self._find_age()
        return float("inf")

    async def admit_refusal(self, leadership: Leadership | None, *, has_snapshot: bool) -> None:
        """A statement was refused when it was examined. "No such table" is an answer too: neither a copy that is behind the session's level
        nor a leader that has been replaced may give it. The statement is then examined again. Raises as `admit` and `is_confirmed`.

        Args:
            has_snapshot: whether it was examined in a snapshot that was admitted.
        """
        if not has_snapshot:
            await self.admit(leadership)
        await confirm(leadership, self._waits)

    async def is_confirmed(self, leadership: Leadership | None, valid_until: float) -> bool:
        """Whether a snapshot that has been taken may be answered; False if it was taken too late and must be taken again.

        Args:
            leadership: of this node, when the read arrived. valid_until: what `admit` has returned.

        Raises:
            SqlError: 57P01 when this node has ceased to lead.
        """
        if leadership is not None:
            if self.settings.level in _CONFIRMED_BY_LEADER:
                await confirm(leadership, self._waits)
            return True
        return self._database.progress.now() <= valid_until

    async def open_snapshot(self, leadership: Leadership | None, sql: str, planned_for: int | None = None) -> tuple[ReaderCheckout, int]:
        """A reader with a snapshot at the session's level, and its position. One that is not confirmed is released, so that ROLLBACK TO
        does not return to it. Raises as `admit` and `is_confirmed`, and as `check_schema` of the schema behind the wait."""
        for _ in range(SNAPSHOT_ATTEMPTS):
            valid_until = await self.admit(leadership, sql)
            self.snapshot_schema = self._database.schema_version
            check_schema(planned_for, self.snapshot_schema)
            checkout = await self._database.pool.acquire(self._waits, snapshot=True)
            try:
                snapshot = checkout.begin_now()
                if snapshot is None:
                    snapshot = await checkout.run(checkout.reader.begin)
                if await self.is_confirmed(leadership, valid_until):
                    return checkout, snapshot
            except BaseException:
                await shielded(checkout.release(committed=False))
                raise
            await shielded(checkout.release(committed=False))
        raise self.too_old()

    def interrupt(self, reason: SqlError) -> None:
        """End a wait by an error."""
        if self._waiter is not None:
            fail(self._waiter, reason)

    async def _wait(self, wait: Callable[[asyncio.Future[None]], Awaitable[None]], deadline: float) -> None:
        """Wait until a deadline. Raises TimeoutError; SqlError, the reason of `interrupt`."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        # A timer, because a read may run outside of a task, where there is no `asyncio.timeout`.
        timer, began_s = self._database.clock.call_at(deadline, fail, waiter, TimeoutError()), self._waits.now()
        try:
            await wait(waiter)
        finally:
            self._waits.read_s += self._waits.now() - began_s
            timer.cancel()
            self._waiter = None

    def _deadline(self, limit_s: float) -> float:
        return self._database.clock.monotonic() + limit_s

    async def _reach(self, position: int) -> None:
        progress, limit_s = self._database.progress, self._database.settings.read_level_wait_s
        if progress.position >= position:
            return
        try:
            await self._wait(lambda waiter: progress.reach(position, waiter), self._deadline(limit_s))
        except TimeoutError:
            raise not_at_position(self._database.name, progress.position, position, limit_s) from None

    async def _be_recent(self, max_staleness_s: float) -> float:
        """Wait until the copy is recent enough. Returns until when it is."""
        progress, limit_s = self._database.progress, self._database.settings.read_level_wait_s
        deadline = self._deadline(limit_s)
        while (until := progress.freshness.current_at + max_staleness_s) < progress.now():
            try:
                await self._wait(progress.news, deadline)
            except TimeoutError:
                raise self.too_old() from None
        return until

    def too_old(self) -> SqlError:
        """The copy was not recent enough in time."""
        progress, freshness = self._database.progress, self._database.progress.freshness
        return not_recent_enough(
            self._database.name,
            freshness.age_s(progress.now()),
            self.settings.max_staleness_s,
            self._database.settings.read_level_wait_s,
            lacks=freshness.lacks,
            reason=progress.failure,
        )

    async def _find_age(self) -> None:
        progress = self._database.progress
        asked_at = progress.now()
        deadline = self._deadline(AGE_LIMIT_S)
        try:
            while progress.freshness.current_at < asked_at:
                await self._wait(progress.news, deadline)
        except TimeoutError:
            return  # The age that is known is shown.


async def confirm(leadership: Leadership | None, waits: StatementWaits, prepared: Prepared | None = None) -> None:
    """On the leader, reads see everything that was acknowledged anywhere before they arrived. Called when the snapshot is taken.

    Args:
        waits: the wait for the log is added to these. Under the lease there is none.
        prepared: the read; None where it is of no interest.
    """
    if leadership is None:
        return
    if prepared is not None and prepared.asks_position:
        leadership.make_readable()
    if not leadership.reads.is_confirmed():
        began_s = waits.now()
        try:
            await leadership.reads.proof()
        finally:
            waits.read_s += waits.now() - began_s


def check_schema(planned_for: int | None, version: int) -> None:
    """A copy that was waited for may have another schema by now: a query of all columns would return others than it was described with.

    Args:
        planned_for: the version of the schema for which a statement was planned; None where the caller does not say.

    Raises:
        SchemaMoved: it must be planned again.
    """
    if planned_for is not None and planned_for != version:
        raise SchemaMoved
