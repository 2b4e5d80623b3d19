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
    SavepointUndone,
    TicketIssued,
)
from triplicate_simulator.workloads.sql.sql_model import ACCOUNTS, OPENING, ClientSession, IdempotentRequest, TransactionAttempt

TOTAL = OPENING * len(ACCOUNTS)

SCHEMA = (
    "create table registers(name text primary key, value integer not null, token text not null)",
    "create table journal(number integer primary key autoincrement, token text not null, register text)",
    "create table accounts(name text primary key, balance integer not null check (balance >= 0), opened integer not null) without rowid",
    "create table transfers(token text not null, source text not null, target text not null, amount integer not null)",
    "create table tickets(id integer primary key autoincrement, token text not null, holder text unique)",
    "create table noise(token text primary key, number integer not null, bytes text not null, wall_us integer not null)",
    "create table parents(name text primary key)",
    "create table children(parent text not null references parents(name) on delete cascade, age integer, unique(parent, age))",
    "create virtual table notes using fts5(body)",
    """create trigger register_journal after update of token on registers begin
    insert into journal(token, register) values (new.token, new.name); end""",
    "create trigger ticket_journal after insert on tickets begin insert into journal(token) values (new.token); end",
)

_UPDATE = "update registers set value = {value}, token = ? where name = ?"
_JOURNAL = "insert into journal(token) values (?)"
TOO_OLD, NOT_KEPT = "55000", "53400"
"""SQLSTATEs of refused requests: its id is older than the kept results; no more results are kept."""
ENDED = ("25P03", "25P04")
"""SQLSTATEs of ended reading transactions: idle for too long, or open for too long."""
_DUPLICATE = "insert into tickets(token, holder) values (?, 'nobody')"
"""A statement that violates uniqueness: the ticket of this holder exists from the beginning."""

_ALL_REGISTERS = "select name, value, token from registers order by name"
EARLIEST_SHARE, ENDED_SHARE = 0.5, 2.0
"""No transaction is ended before the first share of a limit, and all are at the second: limits are checked at intervals, by inexact clocks.
"""

ClientOperation = Callable[[ClientSession], Awaitable[None]]


async def create_tables(talk: ClientSession) -> None:
    """Create the tables and fill them."""
    for statement in SCHEMA:
        await talk.rows(statement)
    for name in [*talk.desk.registers, *talk.desk.counters]:
        await talk.rows("insert into registers values (?, 0, '')", name)
    # In one statement, so that no copy ever has only some of them.
    await talk.rows(f"insert into accounts values {', '.join(f'({name!r}, {OPENING}, {OPENING})' for name in ACCOUNTS)}")
    async with talk.attempt(talk.desk.token("nobody")) as attempt:
        attempt.ask()
        await talk.rows(_DUPLICATE, attempt.token)


# Registers.


async def write_register(talk: ClientSession, register: str = "") -> None:
    """Write one register, unconditionally; any when none is named."""
    register, value = register or talk.chance.choice(talk.desk.registers), talk.desk.value()
    async with talk.attempt(talk.desk.token("put")) as attempt:
        attempt.invoke(register, "write", (value,))
        attempt.values[register] = value
        attempt.ask()
        await talk.rows(_UPDATE.format(value="?"), value, attempt.token, register)


async def add_to_register(talk: ClientSession) -> None:
    """Add one to a register or a counter, and return the sum."""
    register = talk.chance.choice([*talk.desk.registers, *talk.desk.counters])
    async with talk.attempt(talk.desk.token("add")) as attempt:
        operation = attempt.invoke(register, "add", (1,))
        attempt.ask()
        ((value,),) = await talk.rows(_UPDATE.format(value="value + 1") + " returning value", attempt.token, register)
        attempt.operations[operation] = attempt.values[register] = value


async def compare_and_set(talk: ClientSession, register: str = "") -> None:
    """Set a register if it holds the expected value; often it does not."""
    register = register or talk.chance.choice(talk.desk.registers)
    expected, value = talk.desk.last_values.get(register, 0), talk.desk.value()
    async with talk.attempt(talk.desk.token("swap")) as attempt:
        operation = attempt.invoke(register, "swap", (expected, value))
        attempt.ask()
        changed = await talk.affected(_UPDATE.format(value="?") + " and value = ?", value, attempt.token, register, expected)
        attempt.operations[operation] = changed == 1
        attempt.changed = changed == 1
        if changed:
            attempt.values[register] = value


async def read_registers(talk: ClientSession) -> None:
    """Read registers, one after another."""
    for _ in range(talk.chance.randrange(1, 4)):
        await talk.read_register(talk.chance.choice([*talk.desk.registers, *talk.desk.counters]))
        await talk.think()


async def write_at_old_leader(talk: ClientSession, register: str) -> None:
    """Access a register at a node that may no longer lead, after it was written elsewhere: by a conditional change, or by reading."""
    if not talk.leads:
        return  # It has learned meanwhile that it does not lead, and reports that to its clients.
    if talk.chance.random() < 0.7:
        await compare_and_set(talk, register)
    for name in [register, *talk.desk.counters]:
        await talk.read_register(name)


async def read_modify_write(talk: ClientSession) -> None:
    """Read a register and write a new value in one transaction; again if another client was faster."""
    for _ in range(3):
        register, since_s = talk.chance.choice(talk.desk.registers), talk.time()
        try:
            async with talk.transaction(talk.desk.token("change"), talk.chance.choice(["begin", "begin", "begin immediate"])) as attempt:
                await _read_transaction_id(talk, attempt)
                before = await talk.read_register(register, since_s)
                await talk.think()
                value = talk.desk.value()
                await talk.rows(_UPDATE.format(value="?"), value, attempt.token, register)
                await talk.think()
                attempt.invoke(register, "swap", (before, value))
        except SqlError as error:
            if error.sqlstate != "40001":
                raise
        else:
            return


async def exchange_registers(talk: ClientSession) -> None:
    """Exchange the values of two registers in one transaction."""
    if len(talk.desk.registers) < 2:
        return
    one, other = talk.chance.sample(talk.desk.registers, 2)
    since_s = talk.time()
    async with talk.transaction(talk.desk.token("exchange")) as attempt:
        first = await talk.read_register(one, since_s)
        second = await talk.read_register(other, since_s)
        await _read_transaction_id(talk, attempt)
        await talk.rows(_UPDATE.format(value="?"), second, attempt.token, one)
        await talk.rows("update registers set value = ? where name = ?", first, other)
        attempt.invoke(one, "swap", (first, second))
        attempt.invoke(other, "swap", (second, first))


async def _read_transaction_id(talk: ClientSession, attempt: TransactionAttempt) -> None:
    """Read the transaction's id, as a client does that may later query its outcome."""
    if talk.chance.random() < 0.6:
        ((attempt.number,),) = await talk.rows("select pg_current_xact_id()")


# Accounts.


async def transfer(talk: ClientSession) -> None:
    """Move money from one account to another."""
    source, target = talk.chance.sample(ACCOUNTS, 2)
    async with talk.transaction(talk.desk.token("transfer"), talk.chance.choice(["begin", "begin immediate"])) as attempt:
        await _read_transaction_id(talk, attempt)
        await _move_money(talk, attempt.token, source, target)


async def _move_money(talk: ClientSession, token: str, source: str, target: str) -> None:
    ((balance,),) = await talk.rows("select balance from accounts where name = ?", source)
    amount = max(1, int(balance) // 3)
    await talk.think()
    await talk.rows("update accounts set balance = balance - ? where name = ?", amount, source)
    await talk.rows("update accounts set balance = balance + ? where name = ?", amount, target)
    await talk.rows("insert into transfers values (?, ?, ?, ?)", token, source, target, amount)
    await talk.rows(_JOURNAL, token)


async def read_balances(talk: ClientSession) -> None:
    """Read all accounts: in one statement, or in two of one snapshot."""
    if talk.chance.random() < 0.5:
        ((total,),) = await talk.rows("select sum(balance) from accounts")
    else:
        await talk.rows("begin")
        ((low,),) = await talk.rows("select sum(balance) from accounts where name < 'c'")
        await talk.think()
        ((high,),) = await talk.rows("select sum(balance) from accounts where name >= 'c'")
        await talk.rows("commit")
        total = None if low is None else low + high
    if total is None:
        return  # An early state without accounts.
    talk.desk.counts["audits"] += 1
    talk.desk.note(BalancesRead(talk.time(), f"{talk.name} on {talk.node}", int(total), TOTAL), talk.node)


# Tickets, and what else rows may bring with them.


async def insert_ticket(talk: ClientSession) -> None:
    """Insert a ticket; its number must be unique for ever."""
    token, started_s = talk.desk.token("ticket"), talk.time()
    async with talk.attempt(token) as attempt:
        attempt.ask()
        ((number,),) = await talk.rows("insert into tickets(token, holder) values (?, ?) returning id", token, token)
    talk.desk.note(TicketIssued(started_s, talk.time(), token, int(number)), talk.node)


async def waste_tickets(talk: ClientSession) -> None:
    """Use up ticket numbers without leaving a ticket: one deleted, one ignored, one whose newest is deleted."""
    kind = talk.chance.randrange(3)
    async with talk.transaction(talk.desk.token("waste")) as attempt:
        if kind == 0:
            await talk.rows("insert into tickets(token, holder) values (?, ?)", attempt.token, attempt.token)
            await talk.rows("delete from tickets where token = ?", attempt.token)
            return
        if kind == 1:
            await talk.rows("insert or ignore into tickets(token, holder) values (?, 'nobody')", attempt.token)
        else:
            await talk.rows("delete from tickets where id = (select max(id) from tickets where holder <> 'nobody')")
        await talk.rows(_JOURNAL, attempt.token)


async def insert_family(talk: ClientSession) -> None:
    """Insert a parent with children, and delete the oldest parent with its children."""
    async with talk.transaction(talk.desk.token("family"), "begin immediate") as attempt:
        await talk.rows("insert into parents(name) values (?)", attempt.token)
        await talk.rows("insert into children(parent, age) values (?, 1), (?, 2)", attempt.token, attempt.token)
        if talk.chance.random() < 0.5:
            await talk.rows("delete from parents where name = (select name from parents order by rowid limit 1)")
        await talk.rows("insert into notes(body) values (?)", f"a note on {attempt.token}")
        await talk.rows(_JOURNAL, attempt.token)


async def insert_random_values(talk: ClientSession) -> None:
    """Insert random values and the time of day: they must be equal in every copy."""
    async with talk.transaction(talk.desk.token("noise")) as attempt:
        await talk.rows("insert into noise values (?, random(), hex(randomblob(8)), wall_us())", attempt.token)
        await talk.rows(_JOURNAL, attempt.token)


# What comes to nothing, wholly or in part.


async def roll_back_to_savepoint(talk: ClientSession) -> None:
    """Undo a part of a transaction by a savepoint, with or without a failed statement in it."""
    undone = talk.desk.token("undone")
    talk.desk.note(SavepointUndone(talk.time(), undone), talk.node)
    async with talk.transaction(talk.desk.token("savepoint")) as attempt:
        if talk.chance.random() < 0.5:
            await talk.rows(_JOURNAL, attempt.token)
        await talk.rows("savepoint one")
        await talk.rows(_JOURNAL, undone)
        if talk.chance.random() < 0.5:
            await _fail(talk, undone)
        await talk.rows("rollback to one")
        if talk.chance.random() < 0.5:
            await talk.rows("release one")
        await talk.rows("delete from journal where token = ?", attempt.token)
        await talk.rows(_JOURNAL, attempt.token)


async def _fail(talk: ClientSession, token: str) -> None:
    """Run a statement that must fail after some of its changes."""
    try:
        await talk.rows("insert into tickets(token, holder) values (?, ?), (?, 'nobody')", token, token, token)
    except SqlError as error:
        if error.sqlstate != "23505":
            raise
    else:
        talk.desk.stage.problems.append(f"{talk.name} inserted a second ticket of nobody's")


async def abandon_transaction(talk: ClientSession) -> None:
    """Begin a transaction without effect: rolled back, or failed and then committed in vain."""
    token = talk.desk.token("nothing")
    await talk.rows("begin")
    await talk.rows(_JOURNAL, token)
    await talk.think()
    if talk.chance.random() < 0.5:
        await talk.rows("rollback")
    else:
        await _fail(talk, token)
        await talk.rows("commit")


# The schema.


async def make_table(talk: ClientSession) -> None:
    """Create a table with a row, together with other rows."""
    async with talk.transaction(talk.desk.token("table"), "begin immediate") as attempt:
        await talk.rows(f"create table \"made_{attempt.token}\"(number integer primary key autoincrement, text text default 'none')")
        await talk.rows(f'insert into "made_{attempt.token}"(number) values (7)')
        await talk.rows(_JOURNAL, attempt.token)


async def change_schema(talk: ClientSession) -> None:
    """Change columns, indexes, or a table that comes and goes."""
    number = talk.desk.value()
    for statement in talk.chance.choice(
        [
            (f"alter table parents add column added{number} integer default {number}",),
            ("create index if not exists journal_tokens on journal(token)",),
            ("drop index if exists journal_tokens",),
            ("drop table if exists scratch", f"create table scratch(a, b default {number})", "insert into scratch(a) values (1)"),
            ("create table if not exists copied as select name, balance from accounts", "drop table if exists copied"),
        ]
    ):
        await talk.rows(statement)
        await talk.think()


# Requests.


def new_request(talk: ClientSession) -> IdempotentRequest:
    """Draw a request."""
    chance, desk = talk.chance, talk.desk
    kind = chance.choice(["ticket", "add", "transfer"])
    source, target = chance.sample(ACCOUNTS, 2)
    request = IdempotentRequest(kind, desk.token(kind), register=chance.choice(desk.counters), accounts=(source, target))
    if desk.load.dated_requests:
        request.issued_ms = EPOCH_US // 1000 + int(talk.time() * 1000)
    return request


async def send_request(talk: ClientSession, request: IdempotentRequest) -> None:
    """Send a request, perhaps again: it is done once, and all its answers are equal."""
    desk, token = talk.desk, request.token
    started_s = request.first_asked_s = talk.time() if request.first_asked_s is None else request.first_asked_s
    request.sent += 1
    await talk.session.set_request_id(request.request_id)
    if request.kind == "add" and not request.operation:
        request.operation = desk.invoke(talk.name, request.register, "add", (1,))
    desk.note(CommitRequested(talk.time(), talk.name, token), talk.node)
    try:
        if request.kind == "ticket":
            ((number,),) = await talk.rows("insert into tickets(token, holder) values (?, ?) returning id", token, token)
            desk.note(TicketIssued(started_s, talk.time(), token, int(number)), talk.node)
        elif request.kind == "add":
            ((value,),) = await talk.rows(_UPDATE.format(value="value + 1") + " returning value", token, request.register)
            desk.note(Returned(talk.time(), request.operation, value), talk.node)
        else:
            await talk.rows("begin")
            await _move_money(talk, token, *request.accounts)
            await talk.rows("commit")
    except SqlError as error:
        await talk.roll_back()
        if error.sqlstate not in (TOO_OLD, NOT_KEPT):
            raise
        _end_request(talk, request, error.sqlstate)
        return
    desk.counts["repeated" if request.done else "transactions"] += 1
    request.done = True
    desk.note(Committed(talk.time(), token, talk.database.position), talk.node)


def _end_request(talk: ClientSession, request: IdempotentRequest, sqlstate: str) -> None:
    """Record that a request was refused for its id, and what stays unknown about it."""
    desk, token = talk.desk, request.token
    request.over = True
    desk.counts["requests_too_old" if sqlstate == TOO_OLD else "requests_not_kept"] += 1
    if sqlstate == TOO_OLD and request.issued_ms is None:
        # An id without a time is known to be old by the trace of its earlier run.
        desk.note(RequestTooOld(talk.time(), token), talk.node)
    if request.done:
        return
    if request.sent == 1:
        desk.counts["refused"] += 1
        desk.note(RolledBack(talk.time(), token, sqlstate), talk.node)
        if request.operation:
            desk.note(Refused(talk.time(), request.operation), talk.node)
    elif request.operation:
        # An earlier attempt may have run.
        desk.fates[request.operation] = (token, request.kind)


# Transactions that last.


async def hold_snapshot(talk: ClientSession) -> None:
    """Read in one snapshot, stay idle for about as long as the node allows or longer, and read again."""
    load = talk.desk.load
    limit_s = min(load.read_idle_s, load.snapshot_limit_s)
    began_s = talk.time()
    try:
        await talk.rows("begin")
        before = await talk.rows(_ALL_REGISTERS)
        share = talk.chance.choice([0.5, 0.9, ENDED_SHARE])
        await asyncio.sleep(limit_s * share)
        if before != await talk.rows(_ALL_REGISTERS):
            talk.desk.stage.problems.append(f"{talk.name} on {talk.node} saw one snapshot change at {talk.time():.6f}")
        if share == ENDED_SHARE:
            talk.desk.stage.problems.append(
                f"{talk.name} on {talk.node} was silent for {limit_s * share} s and may go on at {talk.time():.6f}"
            )
        await talk.rows("commit")
    except SqlError as error:
        if error.sqlstate not in ENDED:
            raise
        talk.desk.counts["reads_ended"] += 1
        await talk.roll_back()
        if talk.time() - began_s < limit_s * EARLIEST_SHARE:
            talk.desk.stage.problems.append(f"{talk.name} on {talk.node} was ended with {error.sqlstate} before its time: {error}")


# Copies.


async def observe_copy(talk: ClientSession) -> None:
    """Read this node's copy, at whatever position: it is a consistent past state, and moves forward."""
    server = talk.desk.servers[talk.node].server
    await read_balances(talk)
    assert server.host is not None, "it runs this"
    life = server.host.life.number
    for name, value in await talk.rows("select name, value from registers where name like 'count%'"):
        talk.desk.note(MonotonicRead(talk.time(), talk.node, life, str(name), int(value)), talk.node)
    ((count,),) = await talk.rows("select count(*) from journal")
    talk.desk.counts["copy_reads"] += 1
    talk.desk.note(MonotonicRead(talk.time(), talk.node, life, "journal", int(count)), talk.node)


async def read_own_write(talk: ClientSession, token: str, position: int) -> None:
    """Look for a write that the copy must have, since it has reached its position."""
    ((count,),) = await talk.rows("select count(*) from journal where token = ?", token)
    talk.desk.counts["copy_reads"] += 1
    talk.desk.note(OwnWriteRead(talk.time(), talk.node, token, position, int(count)), talk.node)


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
