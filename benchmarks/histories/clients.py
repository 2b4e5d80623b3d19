"""Clients that read and change registers, lists and accounts, and record each operation's start, end and outcome.

Each has one thread and one connection. An operation without an answer in time has an unknown outcome, and its connection is closed: a hung
server does not answer a cancel request either. An error with an SQLSTATE is a refusal, except class 08, whose outcome is unknown.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from benchmarks.histories.cluster import POLL_S, Address, answers
from benchmarks.histories.judge import Seen, Statement, Transfer
from benchmarks.histories.level_doors import MARKS
from benchmarks.histories.stages import Kind, Result, Stages
from triplicate_simulator.checkers.linearizability import RegisterOperation

ACCOUNTS = {f"account{number}": 100 for number in range(8)}
KEYS_AT_A_TIME = 8
OPERATIONS_PER_KEY = 60
"""Operations on one key before the next one is used, so that the search for an order stays small."""
OPERATION_LIMIT_S = 1.5
PHASE_S, PHASES = 1.0, 3
"""In the last phase all clients send single statements only. In the others transactions wait for the writer, which ends windows."""
LATE_S = 5.0
"""Acknowledgements are noted in the order of their times, except for differences below this."""
SCHEMA = (
    MARKS,
    "create table registers(name text primary key, value integer)",
    "create table lists(name text primary key, items text not null)",
    "create table accounts(name text primary key, balance integer not null)",
    "create table transfers(place integer primary key, number integer not null, source text, target text, amount integer)",
)


@dataclass
class Shared:
    """State shared by all clients of a database or a store; every access holds the lock.

    Args:
        addresses: returns the addresses of the nodes now.
    """

    addresses: Callable[[], Sequence[Address]]
    database: str
    stages: Stages = field(default_factory=Stages)
    seen: Seen = field(default_factory=Seen)
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    next_number: int = 0
    on_key: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Numbers of operations by kind of key and stage."""
    writes: list[tuple[float, float]] = field(default_factory=list)
    """Start and end of every acknowledged write."""
    strange: list[str] = field(default_factory=list)
    """Unexpected errors without a known outcome."""

    def number(self) -> int:
        """A new unique number."""
        with self.lock:
            self.next_number += 1
            return self.next_number

    def key(self, kind: str, chance: random.Random, at_a_time: int = KEYS_AT_A_TIME) -> str:
        """A key in use now, which belongs to the present stage.

        Args:
            at_a_time: keys of this kind that are in use together.
        """
        stage = self.stages.now
        with self.lock:
            self.on_key[kind, stage] += 1
            used = self.on_key[kind, stage]
        return f"{kind}-{stage}-{used // (OPERATIONS_PER_KEY * at_a_time)}-{chance.randrange(at_a_time)}"

    def first_write_after(self, moment: float) -> float | None:
        """Time of the first acknowledgement of a write begun after a moment; None while there is none."""
        with self.lock:
            recent = itertools.takewhile(lambda write: write[1] > moment - LATE_S, reversed(self.writes))
            return min((end for begin, end in recent if begin > moment), default=None)


class Unknown(Exception):
    """The outcome is unknown."""


class Refused(Exception):
    """The operation did not happen, and will not."""


class Client(threading.Thread):
    """One client. `run` ends when the shared event is set.

    Args:
        pause_s: pause after each operation, in seconds; 0 for as many operations as possible.
    """

    def __init__(self, shared: Shared, number: int, pause_s: float = 0.0) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self._shared = shared
        self._pause_s = pause_s
        self._chance = random.Random(f"client {number}")
        self._connection: psycopg.Connection[Any] | None = None
        addresses = shared.addresses()
        self._address = addresses[number % len(addresses)]
        self._values: dict[str, int | None] = {}
        """The value last read from each register, for compare-and-swap."""
        self.failure: BaseException | None = None

    def run(self) -> None:
        single = [self._read, self._write, self._swap, self._append, self._look]
        choices = [*single, self._move, self._move_at_once, self._state]
        weights = [15, 15, 15, 13, 7, 10, 15, 10]
        try:
            while not self._shared.over.is_set():
                is_crowd = int(time.monotonic() / PHASE_S) % PHASES == PHASES - 1
                allowed = len(single) if is_crowd else len(choices)
                (work,) = self._chance.choices(choices[:allowed], weights[:allowed])
                work()
                if self._pause_s:
                    self._shared.over.wait(self._pause_s * self._chance.uniform(0.5, 1.5))
        except BaseException as error:  # A defect of this program must not look like an idle client.
            self.failure = error
            raise
        finally:
            self._hang_up()

    # The connection.

    def _connected(self) -> psycopg.Connection[Any] | None:
        while self._connection is None and not self._shared.over.is_set():
            for address in sorted(self._shared.addresses(), key=lambda address: address != self._address):
                if answers(address) and self._connect(address):
                    return self._connection
            self._shared.over.wait(POLL_S * self._chance.uniform(0.5, 1.5))
        return self._connection

    def _connect(self, address: Address) -> bool:
        host, port = address
        dsn = f"host={host} port={port} dbname={self._shared.database} user=client target_session_attrs=read-write connect_timeout=2"
        try:
            self._connection, self._address = psycopg.connect(dsn, autocommit=True), address
        except psycopg.Error:
            return False
        return True

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, work: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        """Run a function on the connection within the limit.

        Raises:
            Refused: it was not done. Unknown: its outcome is unknown.
        """
        connection = self._connected()
        if connection is None:
            raise Refused
        descriptor = os.dup(connection.fileno())
        guard = threading.Timer(OPERATION_LIMIT_S, _cut, [descriptor])
        guard.start()
        try:
            return work(connection)
        except psycopg.Error as error:
            self._judge(connection, error)
        finally:
            guard.cancel()
            guard.join()
            os.close(descriptor)

    def _judge(self, connection: psycopg.Connection[Any], error: psycopg.Error) -> None:
        state = error.sqlstate
        if state is not None and not state.startswith("08"):
            if state.startswith(("XX", "42")):
                with self._shared.lock:
                    self._shared.strange.append(f"{state}: {error}")
            with contextlib.suppress(psycopg.Error):
                if not connection.closed:
                    connection.rollback()
            if connection.closed or state in ("57P01", "25006"):
                self._hang_up()
            raise Refused from error
        self._hang_up()
        raise Unknown from error

    # Operations.

    def _note(self, key: str, kind: str, arguments: tuple[int | None, ...], began: float, result: Any, *, known: bool) -> None:
        ended = time.monotonic() if known else None
        operation = RegisterOperation(kind, arguments, began, ended, result, self.name)
        self._count(Kind.STATEMENTS, Result.ANSWERED if known else Result.UNKNOWN)
        with self._shared.lock:
            self._shared.seen.operations.setdefault(key, []).append(operation)
            if ended is not None and kind != "read":
                self._shared.writes.append((began, ended))

    def _count(self, kind: Kind, result: Result) -> None:
        self._shared.stages.count(kind, result)

    def _on_key(self, key: str, kind: str, arguments: tuple[int | None, ...], work: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        if self._connected() is None:
            return None
        began = time.monotonic()
        try:
            result = self._ask(work)
        except Unknown:
            self._note(key, kind, arguments, began, None, known=False)
            return None
        except Refused:
            self._count(Kind.STATEMENTS, Result.REFUSED)
            return None
        self._note(key, kind, arguments, began, result, known=True)
        return result

    def _read(self) -> None:
        key = self._shared.key("register", self._chance)

        def read(connection: psycopg.Connection[Any]) -> int | None:
            row = connection.execute("select value from registers where name = %s", (key,)).fetchone()
            return None if row is None else int(row[0])

        value = self._on_key(key, "read", (), read)
        if value is not None:
            self._values[key] = value

    def _write(self) -> None:
        key, value = self._shared.key("register", self._chance), self._shared.number()

        def write(connection: psycopg.Connection[Any]) -> None:
            connection.execute("insert into registers values(%s, %s) on conflict(name) do update set value = excluded.value", (key, value))

        self._on_key(key, "write", (value,), write)
        self._values[key] = value

    def _swap(self) -> None:
        key, value = self._shared.key("register", self._chance), self._shared.number()
        expected = self._values.get(key)
        if expected is None:
            self._read()
            return

        def swap(connection: psycopg.Connection[Any]) -> bool:
            changed = connection.execute("update registers set value = %s where name = %s and value = %s", (value, key, expected))
            return changed.rowcount == 1

        if self._on_key(key, "swap", (expected, value), swap):
            self._values[key] = value

    def _append(self) -> None:
        key, item = self._shared.key("list", self._chance), self._shared.number()

        def append(connection: psycopg.Connection[Any]) -> tuple[int, ...]:
            row = connection.execute(
                "insert into lists values(%s, %s) on conflict(name) do update set items = lists.items || ',' || excluded.items "
                "returning items",
                (key, str(item)),
            ).fetchone()
            assert row is not None, "an insertion returns its row"
            return items_of(row[0])

        self._on_key(key, "append", (item,), append)

    def _look(self) -> None:
        key = self._shared.key("list", self._chance)

        def look(connection: psycopg.Connection[Any]) -> tuple[int, ...]:
            row = connection.execute("select items from lists where name = %s", (key,)).fetchone()
            return () if row is None else items_of(row[0])

        self._on_key(key, "read", (), look)

    def _move(self) -> None:
        self._transfer("begin")

    def _move_at_once(self) -> None:
        self._transfer("begin immediate")

    def _transfer(self, begin: str) -> None:
        if self._connected() is None:
            return
        source, target = self._chance.sample(sorted(ACCOUNTS), 2)
        number, amount = self._shared.number(), self._chance.randrange(1, 20)
        began = time.monotonic()
        is_committing = False

        def transfer(connection: psycopg.Connection[Any]) -> None:
            nonlocal is_committing
            connection.execute(begin)
            row = connection.execute("select balance from accounts where name = %s", (source,)).fetchone()
            if row is None or row[0] < amount:
                connection.execute("rollback")
                raise Refused
            connection.execute("update accounts set balance = balance - %s where name = %s", (amount, source))
            connection.execute("update accounts set balance = balance + %s where name = %s", (amount, target))
            values = (number, source, target, amount)
            connection.execute("insert into transfers(number, source, target, amount) values(%s, %s, %s, %s)", values)
            is_committing = True
            connection.execute("commit")

        refused, ended = False, None
        try:
            self._ask(transfer)
            ended = time.monotonic()
        except Unknown:
            refused = not is_committing  # Without a COMMIT the transaction is not committed.
        except Refused:
            refused = True
        self._count(Kind.TRANSACTIONS, Result.REFUSED if refused else Result.UNKNOWN if ended is None else Result.ANSWERED)
        with self._shared.lock:
            self._shared.seen.transfers.append(Transfer(number, source, target, amount, began, ended, refused))
            if ended is not None:
                self._shared.writes.append((began, ended))

    def _state(self) -> None:
        if self._connected() is None:
            return
        began = time.monotonic()

        def state(connection: psycopg.Connection[Any]) -> tuple[dict[str, int], int]:
            if self._chance.random() < 0.5:
                rows = connection.execute("select name, balance, (select count(*) from transfers) from accounts").fetchall()
                return {name: balance for name, balance, _ in rows}, int(rows[0][2])
            with connection.transaction():
                rows = connection.execute("select name, balance from accounts").fetchall()
                (count,) = connection.execute("select count(*) from transfers").fetchall()[0]
            return dict(rows), int(count)

        try:
            balances, count = self._ask(state)
        except (Unknown, Refused):
            self._count(Kind.TRANSACTIONS, Result.REFUSED)
            return
        self._count(Kind.TRANSACTIONS, Result.ANSWERED)
        with self._shared.lock:
            self._shared.seen.statements.append(Statement(began, time.monotonic(), balances, count))


def items_of(text: str) -> tuple[int, ...]:
    """A list as it is stored."""
    return tuple(int(item) for item in text.split(","))


def _cut(descriptor: int) -> None:
    """Break a connection from another thread than the waiting one."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        connection.shutdown(socket.SHUT_RDWR)
