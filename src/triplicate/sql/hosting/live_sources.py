"""The live tables that a node reads from the cluster: nodes, copies, log, snapshots, backups, and the change feed of its databases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from triplicate.client import Client
from triplicate.errors import SqlError, TriplicateError
from triplicate.log import Logs
from triplicate.replica import candidates_of, leader_of, registered_nodes
from triplicate.runtime import Host, resolve, timeout_at
from triplicate.sql.backup.core.manifest import PartKind
from triplicate.sql.core.committed_changes import CommittedTransaction, row_as_json
from triplicate.sql.core.interface import Value
from triplicate.sql.core.live_rows import LiveRequest, LiveRow, LiveSource
from triplicate.sql.core.notifications import Notification
from triplicate.sql.core.rights import Action
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.hosting.change_feed import FeedPart, FeedScan, wanted_by_role
from triplicate.sql.hosting.recorded_backups import recorded_backups
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.datetimes import text_of_micros

READ_LIMIT_S = 10.0
"""Limit on the reading of such a table from the metadata."""
TRANSACTIONS, TRANSACTIONS_MAX = 100, 10_000
"""Transactions of one call of the change feed: by default, and at most."""
WAIT_MAX_S = 60.0
_EVERY_TABLE = "*"
_KINDS = {PartKind.FULL: "full", PartKind.LOG: "increment"}
_Read = Callable[[LiveRequest], Coroutine[Any, Any, list[LiveRow]]]


class LiveSources:
    """The sources of one database.

    Args:
        node_id: of this node. path: the database's node in the metadata. log: the name of its log. identity: of the database.
    """

    def __init__(
        self, host: Host, client: Client, logs: Logs, database: SqlDatabase, node_id: str, path: str, log: str, identity: bytes
    ) -> None:
        self._clock = host.clock
        self._client = client
        self._logs = logs
        self._database = database
        self._node_id = node_id
        self._path = path
        self._log = log
        self._identity = identity
        self._feed = FeedScan(logs, log, host.clock, self._offload)

    def by_table(self) -> dict[str, LiveSource]:
        """Maps the name of each table to its source."""
        return {
            "triplicate_nodes": self._within_limit(self._nodes),
            "triplicate_copies": self._within_limit(self._copies),
            "triplicate_log": self._within_limit(self._segments),
            "triplicate_snapshots": self._within_limit(self._snapshots),
            "triplicate_backups": self._within_limit(self._backups),
            "triplicate_changes": self._changes,
        }

    def _within_limit(self, read: _Read) -> LiveSource:
        async def limited(request: LiveRequest) -> Sequence[LiveRow]:
            try:
                async with timeout_at(self._clock.monotonic() + READ_LIMIT_S):
                    return await read(request)
            except SqlError:
                raise
            except TimeoutError as error:
                raise SqlError("58030", f"the metadata did not answer within {READ_LIMIT_S:g} s", hint="Try again.") from error
            except TriplicateError as error:
                raise SqlError("58030", f"the cluster could not be read: {error}", hint="Try again.") from error

        return limited

    async def _nodes(self, _: LiveRequest) -> list[LiveRow]:
        nodes = await registered_nodes(self._client)
        return [(one.node_id, one.address, int(one.has_tls), int(one.node_id == self._node_id)) for one in nodes]

    async def _copies(self, _: LiveRequest) -> list[LiveRow]:
        tree = self._client.metadata.tree
        leader, copies = await leader_of(tree, self._path), await candidates_of(tree, self._path)
        lead = None if leader is None else leader.node_id
        first = next((copy.position for copy in copies if copy.node_id == lead), None)
        rows: list[LiveRow] = []
        for copy in copies:
            # The others report their positions from time to time. This node knows its own.
            position = self._database.position if copy.node_id == self._node_id else copy.position
            behind = None if first is None else max(0, first - position)
            rows.append((copy.node_id, copy.address, copy.role, int(copy.node_id == lead), position, behind, copy.reason or None))
        return rows

    async def _segments(self, _: LiveRequest) -> list[LiveRow]:
        rows: list[LiveRow] = []
        for one in await self._logs.segments(self._log):
            is_closed = bool(one.records)
            end, records = (one.end_offset, one.records) if is_closed else (None, None)
            times = [_moment(time) if is_closed else None for time in (one.min_time_us, one.max_time_us)]
            rows.append((one.ledger_id, one.first_offset, end, records, one.size_bytes if is_closed else None, one.state.value, *times))
        return rows

    async def _snapshots(self, _: LiveRequest) -> list[LiveRow]:
        listed = await self._logs.snapshots(self._log).read()
        return [
            (
                one.snapshot_id,
                one.position,
                _moment(one.time_ms * 1000),
                one.size_bytes,
                one.stored_bytes,
                one.node,
                "damaged" if one.reason else "good",
                one.reason or None,
            )
            for one in listed.snapshots
        ]

    async def _backups(self, request: LiveRequest) -> list[LiveRow]:
        rows: list[LiveRow] = []
        for one in await recorded_backups(self._client, self._identity):
            log_time = _moment(one.time_ms * 1000) if one.time_ms else None
            # A path and the name of a user of the operator's machine are for superusers.
            where = (one.place, one.maker) if request.is_superuser else (None, None)
            facts = one.first, one.end, log_time, one.size_bytes, *where, one.key_id or None
            rows.append((_KINDS[one.kind], _moment(one.made_ms * 1000), *facts))
        return rows

    # The change feed.

    async def _changes(self, request: LiveRequest) -> list[LiveRow]:
        """The rows of ``triplicate_changes(table, position [, transactions [, seconds]])``; the last one is the position reached.

        Raises:
            SqlError: 22023 for arguments out of range; 42P01, 42501 for the table; 55000, the position is not kept any more.
        """
        table, begin, most, wait_s = _checked_arguments(request.arguments)
        await self._check_table(request, table)
        try:
            part = await self._next_part(request, table, begin, most, self._clock.monotonic() + wait_s)
        except SqlError:
            raise
        except TriplicateError as error:
            raise SqlError("58030", f"the database's log could not be read: {error}", hint="Try again.") from error
        rows: list[LiveRow] = await self._offload(partial(_rows_of, part.transactions))
        return [*rows, (part.position, None, None, None, None, "position", None, None, None, None)]

    async def _offload(self, work: Callable[[], Any]) -> Any:
        return await self._database.pool.examiner.offload(work)

    async def _check_table(self, request: LiveRequest, table: str) -> None:
        if table == _EVERY_TABLE:
            return
        if request.role is not None and not request.access.has(request.role, Action.SELECT, table):
            raise SqlError("42501", f"permission denied for table {table}")
        if await self._database.pool.examiner.columns_of(table, self._database.schema_version) is None:
            raise SqlError("42P01", f'relation "{table}" does not exist', hint="'*' shows the changes of every table.")

    async def _next_part(self, request: LiveRequest, table: str, begin: int, most: int, until: float) -> FeedPart:
        """The transactions after a position; waits until there are any, or the time is over."""
        database, position = self._database, begin
        while True:
            with NextCommit(database) as commit:
                end, version = database.position, database.schema_version
                part = FeedPart([], position)
                if position < end:
                    part = await self._read(request, table, (position, end, version), most)
                if part.transactions or self._clock.monotonic() >= until:
                    if position > end:
                        raise SqlError("22023", f"position {position} lies beyond {end}, which this copy has reached")
                    return part
                position = part.position
                if position >= database.position:
                    await commit.wait(until)

    async def _read(self, request: LiveRequest, table: str, span: tuple[int, int, int], most: int) -> FeedPart:
        """Args:
        span: begin and end, and the version of the schema at the end.
        """
        begin, end, version = span
        access, role, only = self._database.roles.access, request.role, None if table == _EVERY_TABLE else table
        if role is None or access.is_superuser(role):
            wants = wanted_by_role(lambda _: True, {}, only)
            return await self._feed.read(begin, end, most, wants, wants_schema=only is None)
        since = await self._feed.named_since(begin, end, version)
        wants = wanted_by_role(lambda name: access.has(role, Action.SELECT, name), since, only)
        return await self._feed.read(begin, end, most, wants, wants_schema=False)


class NextCommit:
    """Waits for the next commit of a copy. Commits from its beginning on count."""

    def __init__(self, database: SqlDatabase) -> None:
        self._notices = database.activity.notices
        self._clock = database.clock
        self._happened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    follows_commits = True

    def notified(self, notifications: Sequence[Notification]) -> None:
        """A commit follows."""

    def committed(self, position: int, tables: Sequence[str]) -> None:
        resolve(self._happened, None)

    def __enter__(self) -> NextCommit:
        self._notices.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._notices.remove(self)
        self._happened.cancel()

    async def wait(self, until: float) -> None:
        """Return at the next commit, or at a time of the clock."""
        try:
            async with timeout_at(until):
                await self._happened
        except TimeoutError:
            return


def _checked_arguments(arguments: Sequence[Value]) -> tuple[str, int, int, float]:
    table, begin, most, wait_s = (*arguments, None, None)[:4] if len(arguments) < 4 else arguments
    most, wait_s = TRANSACTIONS if most is None else most, 0.0 if wait_s is None else wait_s
    if not isinstance(table, str) or not table:
        raise SqlError("22023", "triplicate_changes needs the name of a table, or '*'")
    if not isinstance(begin, int) or begin < 0:
        raise SqlError("22023", "a position is an integer from 0 on")
    if not isinstance(most, int) or not 0 < most <= TRANSACTIONS_MAX:
        raise SqlError("22023", f"the number of transactions is an integer from 1 to {TRANSACTIONS_MAX}")
    if not isinstance(wait_s, int | float) or not 0 <= wait_s <= WAIT_MAX_S:
        raise SqlError("22023", f"the time to wait is from 0 to {WAIT_MAX_S:g} seconds")
    return table, begin, most, float(wait_s)


def _rows_of(transactions: Sequence[CommittedTransaction]) -> list[LiveRow]:
    rows: list[LiveRow] = []
    for transaction in transactions:
        head = transaction.position, _moment(transaction.committed_at_us), transaction.transaction_id
        for one in transaction.changes:
            images = [row_as_json(row, one.column_types) for row in (one.key, one.new, one.old)]
            rows.append((*head, one.seq, one.table or None, one.type.value, *images, one.sql or None))
    return rows


def _moment(micros: int) -> str:
    return text_of_micros(micros, types.TIMESTAMPTZ)
