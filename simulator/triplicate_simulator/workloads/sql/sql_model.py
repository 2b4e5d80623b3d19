"""The model of one database, which its clients share: the history, the nodes, open outcomes; and one client's session with one node."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import re
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from triplicate.errors import SqlError
from triplicate.sql import SqlDatabase, SqlSession
from triplicate_simulator.checkers.history import History
from triplicate_simulator.checkers.level_rules import StateRead
from triplicate_simulator.checkers.linearizability import Invoked, Refused, Returned
from triplicate_simulator.checkers.sql_rules import (
    BalancesRead,
    CommitRequested,
    Committed,
    CopyDiverged,
    MonotonicRead,
    OutcomeReported,
    OwnWriteRead,
    RequestTooOld,
    RolledBack,
    SavepointUndone,
    TicketIssued,
)
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.sql.sql_load import DatabaseLoad
from triplicate_simulator.workloads.sql.sql_nodes import DATABASE, DatabaseReplica

UNKNOWN = "08007"
RECENT = 20
"""Acknowledged writes that readers of copies look for."""
FETCH_ROWS = 50

COUNTED = (
    "transactions",
    "refused",
    "register_operations",
    "repeated",
    "resolved",
    "audits",
    "copy_reads",
    "requests_too_old",
    "requests_not_kept",
    "reads_ended",
    "ids_forgotten",
    "crowds",
    "crowd_unknown",
    "long_reads",
    "level_reads",
)
RECORDED_AS: dict[type[object], str] = {
    CommitRequested: "commitasked",
    RequestTooOld: "tooold",
    OutcomeReported: "told",
    SavepointUndone: "undone",
    TicketIssued: "answered",
    BalancesRead: "audit",
    OwnWriteRead: "sessionread",
    MonotonicRead: "glance",
    CopyDiverged: "diverged",
}
"""Names of events in the record of a run, where these differ from the name of the class. They are part of the run's digest."""
ACCOUNTS = ("ann", "bob", "cat", "dan")
OPENING = 100
CROWD = "crowd"
"""The register of crowds: the greatest number of the table of this name."""

Row = tuple[Any, ...]


class OpenOperation(NamedTuple):
    """A register operation whose outcome is that of the transaction with this token."""

    token: str
    kind: str


class AcknowledgedWrite(NamedTuple):
    """A write that was acknowledged, and the position at which it is visible."""

    token: str
    position: int


class SqlModel:
    """State that all clients of one database share. It belongs to the world: no node's crash removes it.

    Args:
        servers: the database's replicas, by the names of the nodes.
        database: its name. The first one's history is the run's, each other has one of its own.
    """

    def __init__(self, context: RunContext, load: DatabaseLoad, servers: Mapping[str, DatabaseReplica], database: str = DATABASE) -> None:
        self.context = context
        self.load = load
        self.servers = servers
        self.database = database
        self.history = context.history if database == DATABASE else context.further_histories.setdefault(database, History())
        self.registers = [f"register{number}" for number in range(load.registers)]
        self.counters = ["count0", "count1"]
        self.has_full_text = not load.crowd or database != DATABASE
        """Whether there is a table for full-text search. No statement of such a database is short, so no further group is sent."""
        self.unresolved: dict[str, int] = {}
        """Transaction ids of tokens of unknown outcome, where they are known."""
        self.recent: deque[AcknowledgedWrite] = deque(maxlen=RECENT)
        """Acknowledged tokens, and the position at which each is visible."""
        self.open_operations: dict[int, OpenOperation] = {}
        """Token and kind of each register operation in a transaction whose outcome is not known (yet)."""
        self.lull_until_s = 0.0
        """Clients start no changes before this time, so that a replaced leader does not learn of it by a failed write."""
        self.listeners: list[asyncio.Event] = []
        """Events that are set at every acknowledgement."""
        self.last_values: dict[str, int] = {}
        self.requests: deque[IdempotentRequest] = deque()
        """Unanswered requests, to be sent again under the same id."""
        self.answered: deque[IdempotentRequest] = deque(maxlen=RECENT)
        """Answered requests, which may be sent again all the same."""
        self.counts = dict.fromkeys(COUNTED, 0)
        self._operations = 0
        self._tokens = 0

    def note(self, event: Any, node: str = "clients") -> None:
        """Add an event to the history, and a line to the timeline."""
        self.history.add(event)
        facts = {name: value for name, value in _fields(event).items() if name != "time_s"}
        if self.database != DATABASE:
            facts["database"] = self.database
        self.context.world.recorder.fact(node, f"database.{RECORDED_AS.get(type(event), type(event).__name__.lower())}", facts)

    def note_state(self, read: StateRead) -> None:
        """Add a read of a whole state to the history, and a line without its tokens to the timeline."""
        self.history.add(read)
        self.counts["level_reads"] += 1
        facts = {"reader": read.reader, "level": read.level, "position": read.position, "transactions": len(read.tokens)}
        if self.database != DATABASE:
            facts["database"] = self.database
        self.context.world.recorder.fact(read.node, "database.stateread", facts)

    def token(self, kind: str) -> str:
        """Return a token that no other transaction has."""
        self._tokens += 1
        return f"{kind}:{self._tokens}"

    def resolve_operations(self, journal: Collection[str], places: Mapping[str, int]) -> None:
        """Record the outcome of register operations whose outcome is unknown: those whose token is in the journal were done, at some time;
        the others were not.

        Args:
            places: number of each token in the table of crowds, which is the result of its addition.
        """
        for number, operation in self.open_operations.items():
            if operation.token in journal:
                self.note(Returned(self.context.time(), number, True if operation.kind == "swap" else places.get(operation.token)))
            else:
                self.note(Refused(self.context.time(), number))
        self.open_operations.clear()

    def value(self) -> int:
        """Return a value that no other operation writes into a register."""
        self._tokens += 1
        return self._tokens * 1000

    def invoke(self, client: str, register: str, kind: str, arguments: tuple[int, ...] = (), since_s: float | None = None) -> int:
        """Record that an operation on a register begins, or has begun."""
        self._operations += 1
        self.counts["register_operations"] += 1
        self.note(Invoked(self.context.time() if since_s is None else since_s, self._operations, client, register, kind, arguments))
        return self._operations

    def subscribe(self) -> asyncio.Event:
        """Return an event that is set whenever a write is acknowledged."""
        self.listeners.append(asyncio.Event())
        return self.listeners[-1]

    def leaders(self) -> list[DatabaseReplica]:
        """The nodes that consider themselves leader, the latest first. There may be more than one."""
        leading = [server for server in self.servers.values() if server.leads]
        return sorted(leading, key=lambda server: server.leading_epoch, reverse=True)


@dataclass(eq=False)
class IdempotentRequest:
    """A transaction that is sent again under its own id until it is answered."""

    kind: str
    token: str
    register: str = ""
    operation: int = 0
    """Number of its register operation, once the first attempt has begun."""
    accounts: tuple[str, str] = ("", "")
    first_asked_s: float | None = None
    """When it was first sent: from then on it may be done."""
    done: bool = False
    issued_ms: int | None = None
    """The time in its id, if it has one."""
    sent: int = 0
    over: bool = False
    """It was refused as too old, or no more results are kept: its client does not send it again."""

    @property
    def request_id(self) -> str:
        return self.token if self.issued_ms is None else f"{self.issued_ms:013}:{self.token}"


def _fields(event: Any) -> dict[str, Any]:
    return {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}


class TransactionAttempt:
    """One attempt at one transaction with a token, and its register operations."""

    def __init__(self, session: ClientSession, token: str) -> None:
        self._session = session
        self.token = token
        self.number: int | None = None
        """The transaction's id, once it was read."""
        self.operations: dict[int, Any] = {}
        """Register operations that share the transaction's outcome, with their results."""
        self.values: dict[str, int] = {}
        """Values of registers after its acknowledgement."""
        self.commit_requested = False
        self.changed = True
        """Cleared if it was done without effect, so that its token is nowhere."""

    def note_commit_requested(self) -> None:
        """Record that the next statement may commit it."""
        self.commit_requested = True
        self._session.model.note(CommitRequested(self._session.time(), self._session.name, self.token), self._session.node)
        if self.number is not None:
            self._session.model.unresolved[self.token] = self.number

    def invoke(self, register: str, kind: str, arguments: tuple[int, ...] = ()) -> int:
        """Begin a register operation that is part of it."""
        operation = self._session.model.invoke(self._session.name, register, kind, arguments)
        self.operations[operation] = None
        self._session.model.open_operations[operation] = OpenOperation(self.token, kind)
        return operation


class ClientSession:
    """One client's session with one node. Runs as part of the node's process and ends with it."""

    def __init__(self, model: SqlModel, name: str, node: str, database: SqlDatabase, sql_session: SqlSession, rng: random.Random) -> None:
        self.model = model
        self.name = name
        self.node = node
        self.database = database
        self.sql_session = sql_session
        self.rng = rng
        self.leads = database.is_leader
        """Whether the node leads. If it ceases to, it ends the session. On other nodes reads may be stale."""

    def time(self) -> float:
        return self.model.context.time()

    async def think(self) -> None:
        """Pause as an application does between its statements."""
        if self.rng.random() < 0.5:
            await asyncio.sleep(self.rng.expovariate(20.0))

    async def rows(self, sql: str, *parameters: Any) -> list[Row]:
        """Run one statement and fetch all its rows."""
        cursor = await self.sql_session.start(await self.sql_session.prepare(sql), parameters)
        rows: list[Row] = []
        while got := await cursor.fetch(FETCH_ROWS):
            rows += got
        await cursor.close()
        return rows

    async def affected(self, sql: str, *parameters: Any) -> int:
        """Run one changing statement. Returns the number of changed rows."""
        cursor = await self.sql_session.start(await self.sql_session.prepare(sql), parameters)
        await cursor.close()
        return cursor.rows_affected

    async def read_register(self, register: str, since_s: float | None = None) -> int:
        """Read a register linearizably.

        Args:
            since_s: start of the surrounding transaction, which shows the state of its first read.
        """
        operation = self.model.invoke(self.name, register, "read", since_s=since_s)
        ((value,),) = await self.rows("select value from registers where name = ?", register)
        self.model.note(Returned(self.time(), operation, value), self.node)
        self.model.last_values[register] = value
        return int(value)

    @asynccontextmanager
    async def transaction(self, token: str, begin: str = "begin") -> AsyncIterator[TransactionAttempt]:
        """BEGIN, the block, COMMIT; the outcome is recorded."""
        async with self.attempt(token) as attempt:
            try:
                await self.rows(begin)
                yield attempt
                attempt.note_commit_requested()
                await self.rows("commit")
            except SqlError:
                await self.roll_back()
                raise

    async def roll_back(self) -> None:
        """Leave the transaction, if the session still works."""
        with suppress(SqlError):
            await self.rows("rollback")

    @asynccontextmanager
    async def attempt(self, token: str) -> AsyncIterator[TransactionAttempt]:
        """Record the outcome of the block: acknowledged, without effect, or unknown."""
        attempt = TransactionAttempt(self, token)
        try:
            yield attempt
        except SqlError as error:
            self._failed(attempt, error)
            raise
        self.acknowledged(attempt)

    def acknowledged(self, attempt: TransactionAttempt) -> None:
        """Record that the attempt was acknowledged."""
        model = self.model
        model.unresolved.pop(attempt.token, None)
        model.counts["transactions"] += 1
        if attempt.changed:
            model.note(Committed(self.time(), attempt.token, self.database.position), self.node)
            model.recent.append(AcknowledgedWrite(attempt.token, self.database.position))
            for listener in model.listeners:
                listener.set()
        else:
            model.note(RolledBack(self.time(), attempt.token, "00000"), self.node)
        for operation, result in attempt.operations.items():
            model.open_operations.pop(operation, None)
            model.note(Returned(self.time(), operation, result), self.node)
        model.last_values.update(attempt.values)

    def _failed(self, attempt: TransactionAttempt, error: SqlError) -> None:
        if error.sqlstate == UNKNOWN:
            number = re.search(r"id is (\d+)", error.detail or "")
            if number is not None:
                self.model.unresolved[attempt.token] = int(number[1])
            self.model.context.count_unknown(error)
            self.model.counts["crowd_unknown"] += attempt.token.startswith(CROWD)
            return
        self.refuse(attempt, error.sqlstate)

    def refuse(self, attempt: TransactionAttempt, sqlstate: str) -> None:
        """Record that the attempt has no effect."""
        self.model.unresolved.pop(attempt.token, None)
        self.model.counts["refused"] += 1
        self.model.note(RolledBack(self.time(), attempt.token, sqlstate), self.node)
        for operation in attempt.operations:
            self.model.open_operations.pop(operation, None)
            self.model.note(Refused(self.time(), operation), self.node)

    async def resolve(self, token: str) -> None:
        """Query the outcome of a transaction of unknown outcome."""
        number = self.model.unresolved.get(token)
        if number is None:
            return  # It was answered meanwhile.
        ((status,),) = await self.rows("select pg_xact_status(?)", number)
        if status is None:
            # The id was forgotten, as ids are after a while: the outcome stays unknown.
            self.model.unresolved.pop(token, None)
            self.model.counts["ids_forgotten"] += 1
        if status in ("committed", "aborted"):
            self.model.unresolved.pop(token, None)
            self.model.counts["resolved"] += 1
            self.model.note(OutcomeReported(self.time(), token, status), self.node)


@asynccontextmanager
async def open_client_session(
    model: SqlModel, name: str, replica: DatabaseReplica, database: SqlDatabase, rng: random.Random
) -> AsyncIterator[ClientSession]:
    """A session with a node's database for the block.

    Raises:
        SqlError: the node accepts no sessions.
    """
    sql_session = await database.session(name)
    try:
        yield ClientSession(model, name, replica.server.name, database, sql_session, rng)
    finally:
        await sql_session.close()


__all__ = ["ACCOUNTS", "CROWD", "OPENING", "UNKNOWN", "ClientSession", "SqlModel", "TransactionAttempt", "open_client_session"]
