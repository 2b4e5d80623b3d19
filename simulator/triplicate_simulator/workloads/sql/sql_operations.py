"""Operations of database clients: statements and transactions of many kinds, each recorded so that it can be judged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from triplicate.errors import SqlError
from triplicate.sim.host import EPOCH_US
from triplicate_simulator.checkers.linearizability import Refused, Returned
from triplicate_simulator.checkers.sql_rules import (
    BalancesRead,
    CommitRequested,
    Committed,
    MonotonicRead,
    OwnWriteRead,
    RequestTooOld,
    RolledBack,
    RowsRead,
    SavepointUndone,
    TicketIssued,
)
from triplicate_simulator.workloads.sql.sql_model import (
    ACCOUNTS,
    CROWD,
    OPENING,
    ClientSession,
    IdempotentRequest,
    OpenOperation,
    TransactionAttempt,
)

TOTAL = OPENING * len(ACCOUNTS)

SCHEMA = (
    "create table registers(name text primary key, value integer not null, token text not null)",
    "create table journal(number integer primary key autoincrement, token text not null, register text)",
    "create table accounts(name text primary key, balance integer not null check (balance >= 0), opened integer not null) without rowid",
    # Without triggers, so that an insertion is short and may be part of a further group.
    "create table crowd(number integer primary key autoincrement, token text not null)",
    "create table transfers(token text not null, source text not null, target text not null, amount integer not null)",
    "create table tickets(id integer primary key autoincrement, token text not null, holder text unique)",
    "create table noise(token text primary key, number integer not null, bytes text not null, wall_us integer not null)",
    "create table parents(name text primary key)",
    "create table children(parent text not null references parents(name) on delete cascade, age integer, unique(parent, age))",
    """create trigger register_journal after update of token on registers begin
    insert into journal(token, register) values (new.token, new.name); end""",
    "create trigger ticket_journal after insert on tickets begin insert into journal(token) values (new.token); end",
)

_FULL_TEXT = "create virtual table notes using fts5(body)"
_UPDATE = "update registers set value = {value}, token = ? where name = ?"
_JOURNAL = "insert into journal(token) values (?)"
TOO_OLD, NOT_KEPT = "55000", "53400"
"""SQLSTATEs of refused requests: its id is older than the kept results; no more results are kept."""
ENDED = ("25P03", "25P04")
"""SQLSTATEs of ended reading transactions: idle for too long, or open for too long."""
_DUPLICATE = "insert into tickets(token, holder) values (?, 'nobody')"
"""A statement that violates uniqueness: the ticket of this holder exists from the beginning."""

_ALL_REGISTERS = "select name, value, token from registers order by name"
_CROWD_COUNT = "(select coalesce(max(number), 0) from crowd)"
_LONG_READ_FACTORS = 4
_LONG_READ = f"select a.name, b.name, c.name, d.name, {_CROWD_COUNT} from accounts a, accounts b, accounts c, accounts d"
"""256 rows: a read on the event loop is interrupted after 200."""
EARLIEST_SHARE, ENDED_SHARE = 0.5, 2.0
"""No transaction is ended before the first share of a limit, and all are at the second: limits are checked at intervals, by inexact clocks.
"""

ClientOperation = Callable[[ClientSession], Awaitable[None]]


async def create_tables(session: ClientSession) -> None:
    """Create the tables and fill them."""
    for statement in SCHEMA:
        await session.rows(statement)
    if session.model.has_full_text:
        await session.rows(_FULL_TEXT)
    for name in [*session.model.registers, *session.model.counters]:
        await session.rows("insert into registers values (?, 0, '')", name)
    # In one statement, so that no copy ever has only some of them.
    await session.rows(f"insert into accounts values {', '.join(f'({name!r}, {OPENING}, {OPENING})' for name in ACCOUNTS)}")
    async with session.attempt(session.model.token("nobody")) as attempt:
        attempt.note_commit_requested()
        await session.rows(_DUPLICATE, attempt.token)


# Registers.


async def write_register(session: ClientSession, register: str = "") -> None:
    """Write one register, unconditionally; any when none is named."""
    register, value = register or session.rng.choice(session.model.registers), session.model.value()
    async with session.attempt(session.model.token("put")) as attempt:
        attempt.invoke(register, "write", (value,))
        attempt.values[register] = value
        attempt.note_commit_requested()
        await session.rows(_UPDATE.format(value="?"), value, attempt.token, register)


async def add_to_register(session: ClientSession) -> None:
    """Add one to a register or a counter, and return the sum."""
    register = session.rng.choice([*session.model.registers, *session.model.counters])
    async with session.attempt(session.model.token("add")) as attempt:
        operation = attempt.invoke(register, "add", (1,))
        attempt.note_commit_requested()
        ((value,),) = await session.rows(_UPDATE.format(value="value + 1") + " returning value", attempt.token, register)
        attempt.operations[operation] = attempt.values[register] = value


async def compare_and_set(session: ClientSession, register: str = "") -> None:
    """Set a register if it holds the expected value; often it does not."""
    register = register or session.rng.choice(session.model.registers)
    expected, value = session.model.last_values.get(register, 0), session.model.value()
    async with session.attempt(session.model.token("swap")) as attempt:
        operation = attempt.invoke(register, "swap", (expected, value))
        attempt.note_commit_requested()
        changed = await session.affected(_UPDATE.format(value="?") + " and value = ?", value, attempt.token, register, expected)
        attempt.operations[operation] = changed == 1
        attempt.changed = changed == 1
        if changed:
            attempt.values[register] = value


async def read_registers(session: ClientSession) -> None:
    """Read registers, one after another."""
    for _ in range(session.rng.randrange(1, 4)):
        await session.read_register(session.rng.choice([*session.model.registers, *session.model.counters]))
        await session.think()


async def write_at_old_leader(session: ClientSession, register: str) -> None:
    """Access a register at a node that may no longer lead, after it was written elsewhere: by a conditional change, or by reading."""
    if not session.leads:
        return  # It has learned meanwhile that it does not lead, and reports that to its clients.
    if session.rng.random() < 0.5:
        await compare_and_set(session, register)
    for name in [register, *session.model.counters]:
        await session.read_register(name)


async def read_modify_write(session: ClientSession) -> None:
    """Read a register and write a new value in one transaction; again if another client was faster."""
    for _ in range(3):
        register, since_s = session.rng.choice(session.model.registers), session.time()
        try:
            async with session.transaction(
                session.model.token("change"), session.rng.choice(["begin", "begin", "begin immediate"])
            ) as attempt:
                await _read_transaction_id(session, attempt)
                before = await session.read_register(register, since_s)
                await session.think()
                value = session.model.value()
                await session.rows(_UPDATE.format(value="?"), value, attempt.token, register)
                await session.think()
                attempt.invoke(register, "swap", (before, value))
        except SqlError as error:
            if error.sqlstate != "40001":
                raise
        else:
            return


async def exchange_registers(session: ClientSession) -> None:
    """Exchange the values of two registers in one transaction."""
    if len(session.model.registers) < 2:
        return
    one, other = session.rng.sample(session.model.registers, 2)
    since_s = session.time()
    async with session.transaction(session.model.token("exchange")) as attempt:
        first = await session.read_register(one, since_s)
        second = await session.read_register(other, since_s)
        await _read_transaction_id(session, attempt)
        await session.rows(_UPDATE.format(value="?"), second, attempt.token, one)
        await session.rows("update registers set value = ? where name = ?", first, other)
        attempt.invoke(one, "swap", (first, second))
        attempt.invoke(other, "swap", (second, first))


async def _read_transaction_id(session: ClientSession, attempt: TransactionAttempt) -> None:
    """Read the transaction's id, as a client does that may later query its outcome."""
    if session.rng.random() < 0.6:
        ((attempt.number,),) = await session.rows("select pg_current_xact_id()")


# Crowds: many statements at once. The numbers of the table `crowd` have no gaps, so an insertion adds one to a register.


async def join_crowd(session: ClientSession) -> None:
    """Insert a row by a short statement, which returns its number."""
    async with session.attempt(session.model.token("crowd")) as attempt:
        operation = attempt.invoke(CROWD, "add", (1,))
        attempt.note_commit_requested()
        ((number,),) = await session.rows("insert into crowd(token) values (?) returning number", attempt.token)
        attempt.operations[operation] = int(number)


async def count_crowd(session: ClientSession) -> None:
    """Read the greatest number by a short statement."""
    operation = session.model.invoke(session.name, CROWD, "read")
    ((number,),) = await session.rows(f"select {_CROWD_COUNT}")
    session.model.note(Returned(session.time(), operation, int(number)), session.node)


async def read_crowd_at_length(session: ClientSession) -> None:
    """Read more rows than a read on the event loop may have. Each has the greatest number of the one state that is read."""
    operation = session.model.invoke(session.name, CROWD, "read")
    rows = await session.rows(_LONG_READ)
    numbers = {int(row[-1]) for row in rows}
    session.model.counts["long_reads"] += 1
    distinct = len({row[:-1] for row in rows})
    session.model.note(
        RowsRead(
            session.time(), f"{session.name} on {session.node}", len(ACCOUNTS) ** _LONG_READ_FACTORS, len(rows), distinct, len(numbers)
        ),
        session.node,
    )
    session.model.note(Returned(session.time(), operation, min(numbers)), session.node)


# Accounts.


async def transfer(session: ClientSession) -> None:
    """Move money from one account to another."""
    source, target = session.rng.sample(ACCOUNTS, 2)
    async with session.transaction(session.model.token("transfer"), session.rng.choice(["begin", "begin immediate"])) as attempt:
        await _read_transaction_id(session, attempt)
        await _move_money(session, attempt.token, source, target)


async def _move_money(session: ClientSession, token: str, source: str, target: str) -> None:
    ((balance,),) = await session.rows("select balance from accounts where name = ?", source)
    amount = max(1, int(balance) // 3)
    await session.think()
    await session.rows("update accounts set balance = balance - ? where name = ?", amount, source)
    await session.rows("update accounts set balance = balance + ? where name = ?", amount, target)
    await session.rows("insert into transfers values (?, ?, ?, ?)", token, source, target, amount)
    await session.rows(_JOURNAL, token)


async def read_balances(session: ClientSession) -> None:
    """Read all accounts: in one statement, or in two of one snapshot."""
    if session.rng.random() < 0.5:
        ((total,),) = await session.rows("select sum(balance) from accounts")
    else:
        await session.rows("begin")
        ((low,),) = await session.rows("select sum(balance) from accounts where name < 'c'")
        await session.think()
        ((high,),) = await session.rows("select sum(balance) from accounts where name >= 'c'")
        await session.rows("commit")
        total = None if low is None else low + high
    if total is None:
        return  # An early state without accounts.
    session.model.counts["audits"] += 1
    session.model.note(BalancesRead(session.time(), f"{session.name} on {session.node}", int(total), TOTAL), session.node)


# Tickets, and what else rows may bring with them.


async def insert_ticket(session: ClientSession) -> None:
    """Insert a ticket; its number must be unique for ever."""
    token, started_s = session.model.token("ticket"), session.time()
    async with session.attempt(token) as attempt:
        attempt.note_commit_requested()
        ((number,),) = await session.rows("insert into tickets(token, holder) values (?, ?) returning id", token, token)
    session.model.note(TicketIssued(started_s, session.time(), token, int(number)), session.node)


async def waste_tickets(session: ClientSession) -> None:
    """Use up ticket numbers without leaving a ticket: one deleted, one ignored, one whose newest is deleted."""
    kind = session.rng.randrange(3)
    async with session.transaction(session.model.token("waste")) as attempt:
        if kind == 0:
            await session.rows("insert into tickets(token, holder) values (?, ?)", attempt.token, attempt.token)
            await session.rows("delete from tickets where token = ?", attempt.token)
            return
        if kind == 1:
            await session.rows("insert or ignore into tickets(token, holder) values (?, 'nobody')", attempt.token)
        else:
            await session.rows("delete from tickets where id = (select max(id) from tickets where holder <> 'nobody')")
        await session.rows(_JOURNAL, attempt.token)


async def insert_family(session: ClientSession) -> None:
    """Insert a parent with children, and delete the oldest parent with its children."""
    async with session.transaction(session.model.token("family"), "begin immediate") as attempt:
        await session.rows("insert into parents(name) values (?)", attempt.token)
        await session.rows("insert into children(parent, age) values (?, 1), (?, 2)", attempt.token, attempt.token)
        if session.rng.random() < 0.5:
            await session.rows("delete from parents where name = (select name from parents order by rowid limit 1)")
        if session.model.has_full_text:
            await session.rows("insert into notes(body) values (?)", f"a note on {attempt.token}")
        await session.rows(_JOURNAL, attempt.token)


async def insert_random_values(session: ClientSession) -> None:
    """Insert random values and the time of day: they must be equal in every copy."""
    async with session.transaction(session.model.token("noise")) as attempt:
        await session.rows("insert into noise values (?, random(), hex(randomblob(8)), wall_us())", attempt.token)
        await session.rows(_JOURNAL, attempt.token)


# Transactions without effect, wholly or in part.


async def roll_back_to_savepoint(session: ClientSession) -> None:
    """Undo a part of a transaction by a savepoint, with or without a failed statement in it."""
    undone = session.model.token("undone")
    session.model.note(SavepointUndone(session.time(), undone), session.node)
    async with session.transaction(session.model.token("savepoint")) as attempt:
        if session.rng.random() < 0.5:
            await session.rows(_JOURNAL, attempt.token)
        await session.rows("savepoint one")
        await session.rows(_JOURNAL, undone)
        if session.rng.random() < 0.5:
            await _fail(session, undone)
        await session.rows("rollback to one")
        if session.rng.random() < 0.5:
            await session.rows("release one")
        await session.rows("delete from journal where token = ?", attempt.token)
        await session.rows(_JOURNAL, attempt.token)


async def _fail(session: ClientSession, token: str) -> None:
    """Run a statement that must fail after some of its changes."""
    try:
        await session.rows("insert into tickets(token, holder) values (?, ?), (?, 'nobody')", token, token, token)
    except SqlError as error:
        if error.sqlstate != "23505":
            raise
    else:
        session.model.context.problems.append(f"{session.name} inserted a second ticket of the holder 'nobody'")


async def abandon_transaction(session: ClientSession) -> None:
    """Begin a transaction without effect: rolled back, or failed and then committed in vain."""
    token = session.model.token("nothing")
    await session.rows("begin")
    await session.rows(_JOURNAL, token)
    await session.think()
    if session.rng.random() < 0.5:
        await session.rows("rollback")
    else:
        await _fail(session, token)
        await session.rows("commit")


# The schema.


async def make_table(session: ClientSession) -> None:
    """Create a table with a row, together with other rows."""
    async with session.transaction(session.model.token("table"), "begin immediate") as attempt:
        await session.rows(f"create table \"made_{attempt.token}\"(number integer primary key autoincrement, text text default 'none')")
        await session.rows(f'insert into "made_{attempt.token}"(number) values (7)')
        await session.rows(_JOURNAL, attempt.token)


async def change_schema(session: ClientSession) -> None:
    """Change columns, indexes, or a table that comes and goes."""
    number = session.model.value()
    for statement in session.rng.choice(
        [
            (f"alter table parents add column added{number} integer default {number}",),
            ("create index if not exists journal_tokens on journal(token)",),
            ("drop index if exists journal_tokens",),
            ("drop table if exists scratch", f"create table scratch(a, b default {number})", "insert into scratch(a) values (1)"),
            ("create table if not exists copied as select name, balance from accounts", "drop table if exists copied"),
        ]
    ):
        await session.rows(statement)
        await session.think()


# Requests.


def new_request(session: ClientSession) -> IdempotentRequest:
    """Draw a request."""
    rng, model = session.rng, session.model
    kind = rng.choice(["ticket", "add", "transfer"])
    source, target = rng.sample(ACCOUNTS, 2)
    request = IdempotentRequest(kind, model.token(kind), register=rng.choice(model.counters), accounts=(source, target))
    if model.load.dated_requests:
        request.issued_ms = EPOCH_US // 1000 + int(session.time() * 1000)
    return request


async def send_request(session: ClientSession, request: IdempotentRequest) -> None:
    """Send a request, perhaps again: it is done once, and all its answers are equal."""
    model, token = session.model, request.token
    started_s = request.first_asked_s = session.time() if request.first_asked_s is None else request.first_asked_s
    request.sent += 1
    await session.sql_session.set_request_id(request.request_id)
    if request.kind == "add" and not request.operation:
        request.operation = model.invoke(session.name, request.register, "add", (1,))
    model.note(CommitRequested(session.time(), session.name, token), session.node)
    try:
        if request.kind == "ticket":
            ((number,),) = await session.rows("insert into tickets(token, holder) values (?, ?) returning id", token, token)
            model.note(TicketIssued(started_s, session.time(), token, int(number)), session.node)
        elif request.kind == "add":
            ((value,),) = await session.rows(_UPDATE.format(value="value + 1") + " returning value", token, request.register)
            model.note(Returned(session.time(), request.operation, value), session.node)
        else:
            await session.rows("begin")
            await _move_money(session, token, *request.accounts)
            await session.rows("commit")
    except SqlError as error:
        await session.roll_back()
        if error.sqlstate not in (TOO_OLD, NOT_KEPT):
            raise
        _end_request(session, request, error.sqlstate)
        return
    model.counts["repeated" if request.done else "transactions"] += 1
    request.done = True
    model.note(Committed(session.time(), token, session.database.position), session.node)


def _end_request(session: ClientSession, request: IdempotentRequest, sqlstate: str) -> None:
    """Record that a request was refused for its id, and what stays unknown about it."""
    model, token = session.model, request.token
    request.over = True
    model.counts["requests_too_old" if sqlstate == TOO_OLD else "requests_not_kept"] += 1
    if sqlstate == TOO_OLD and request.issued_ms is None:
        # An id without a time is known to be old by the trace of its earlier run.
        model.note(RequestTooOld(session.time(), token), session.node)
    if request.done:
        return
    if request.sent == 1:
        model.counts["refused"] += 1
        model.note(RolledBack(session.time(), token, sqlstate), session.node)
        if request.operation:
            model.note(Refused(session.time(), request.operation), session.node)
    elif request.operation:
        # An earlier attempt may have run.
        model.open_operations[request.operation] = OpenOperation(token, request.kind)


# Transactions that last.


async def hold_snapshot(session: ClientSession) -> None:
    """Read in one snapshot, stay idle for about as long as the node allows or longer, and read again."""
    load = session.model.load
    limit_s = min(load.read_idle_s, load.snapshot_limit_s)
    began_s = session.time()
    try:
        await session.rows("begin")
        before = await session.rows(_ALL_REGISTERS)
        share = session.rng.choice([0.5, 0.9, ENDED_SHARE])
        await asyncio.sleep(limit_s * share)
        if before != await session.rows(_ALL_REGISTERS):
            session.model.context.problems.append(f"{session.name} on {session.node} saw one snapshot change at {session.time():.6f}")
        if share == ENDED_SHARE:
            session.model.context.problems.append(
                f"{session.name} on {session.node} was silent for {limit_s * share} s and may go on at {session.time():.6f}"
            )
        await session.rows("commit")
    except SqlError as error:
        if error.sqlstate not in ENDED:
            raise
        session.model.counts["reads_ended"] += 1
        await session.roll_back()
        if session.time() - began_s < limit_s * EARLIEST_SHARE:
            session.model.context.problems.append(
                f"{session.name} on {session.node} was ended with {error.sqlstate} before its time: {error}"
            )


# Copies.


async def observe_copy(session: ClientSession) -> None:
    """Read this node's copy at its present position: it is a consistent past state, and moves forward."""
    server = session.model.servers[session.node].server
    await read_balances(session)
    assert server.host is not None, "it runs this"
    life = server.host.life.number
    for name, value in await session.rows("select name, value from registers where name like 'count%'"):
        session.model.note(MonotonicRead(session.time(), session.node, life, str(name), int(value)), session.node)
    ((count,),) = await session.rows("select count(*) from journal")
    session.model.counts["copy_reads"] += 1
    session.model.note(MonotonicRead(session.time(), session.node, life, "journal", int(count)), session.node)


async def read_own_write(session: ClientSession, token: str, position: int) -> None:
    """Look for a write that the copy must have, since it has reached its position."""
    tokens = "select token from journal union all select token from crowd"
    ((count,),) = await session.rows(f"select count(*) from ({tokens}) where token = ?", token)
    session.model.counts["copy_reads"] += 1
    session.model.note(OwnWriteRead(session.time(), session.node, token, position, int(count)), session.node)


OPERATIONS: dict[str, tuple[ClientOperation, int]] = {
    "put": (write_register, 4),
    "add": (add_to_register, 4),
    "swap": (compare_and_set, 3),
    "get": (read_registers, 8),
    "change": (read_modify_write, 4),
    "exchange": (exchange_registers, 2),
    "transfer": (transfer, 4),
    "audit": (read_balances, 2),
    "ticket": (insert_ticket, 3),
    "waste_tickets": (waste_tickets, 2),
    "family": (insert_family, 1),
    "noise": (insert_random_values, 1),
    "step_back": (roll_back_to_savepoint, 2),
    "give_up": (abandon_transaction, 1),
    "make_table": (make_table, 1),
    "change_schema": (change_schema, 1),
}
"""Operations with their weights."""
SCHEMA_OPERATIONS = ("make_table", "change_schema")
