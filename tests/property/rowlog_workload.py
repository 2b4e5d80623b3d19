"""Random SQL for the differential test of the row log: statements, schema changes, and the comparison of two files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.batch_builder import DEFAULT_TRANSACTION_BYTES
from triplicate.sql.core.interface import Prepared, StatementKind
from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.executor.interrupts import TransactionLost
from triplicate.sql.executor.statement_batches import AutocommitRequest, PendingBatch
from triplicate.sql.executor.transaction_functions import TransactionContext, TransactionIds, open_applier_connection
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.sqlite_file import open_reader, open_store
from triplicate.sql.storage.transaction_history import RequestLimits

SCHEMA = """
create table a(id integer primary key, u unique, v text, w unique);
create table b(k text primary key, v, n int);
create table c(x, y, z real);
create table d(k text collate nocase, j int, v, primary key(k, j)) without rowid;
create table e(id integer primary key autoincrement, p references a(id) on delete cascade on update cascade,
               q references b(k) on delete set null on update cascade);
create table g(id integer primary key, a int, s as (a * 3) stored, m text);
create table h(k text collate nocase primary key, v);
create table l(id integer primary key, msg);
create table p(id integer primary key autoincrement, a, v as (a * 2) virtual unique, m text, w unique);
create table q(a, v as (coalesce(a, 0) || 'x') virtual, b);
create unique index b_n on b(n) where n is not null;
create index c_x on c(x);
create virtual table f using fts5(t);
create virtual table r using rtree(id, x0, x1);
create trigger ta after update on a begin insert into l(msg) values(coalesce(old.v, '') || '>' || coalesce(new.v, '')); end;
create trigger tb before delete on b begin update c set z = 1.5 where x = old.n; end;
create trigger tg after insert on g when new.a > 50 begin update g set m = 'big' where id = new.id; delete from l where id % 7 = 0; end;
create trigger tc after insert on c when new.x = 3 begin select raise(ignore); end;
create trigger tp after update on p begin insert into l(msg) values(new.m); update p set m = 't' where id = new.id and m = 'q'; end;
create trigger te after insert on e when new.id % 11 = 0 begin delete from e where id = new.id; end;
alter table h set (change_images = full);
alter table d set (change_images = full)
"""


class Pair:
    """A leader's file and a follower's, and the batches between them."""

    def __init__(
        self,
        folder: Path,
        wall_us: Callable[[], int] = lambda: 0,
        limits: RequestLimits | None = None,
        max_bytes: int = DEFAULT_TRANSACTION_BYTES,
    ) -> None:
        self.paths = [str(folder / "leader.db"), str(folder / "follower.db")]
        for path in self.paths:
            open_store(path, b"d" * 16)
        self.writer = WriterConnection(self.paths[0], TransactionIds(1), wall_us=wall_us, request_limits=limits, max_bytes=max_bytes)
        self.reader = open_reader(self.paths[0], TransactionContext().register)
        self.gate = Authorizer(self.reader)
        self.follower = open_applier_connection(self.paths[1])
        self.applier = Applier(self.follower)
        self.parts = 0
        """Records that were a part of a transaction."""

    def close(self) -> None:
        self.writer.close()
        self.reader.close(True)
        self.follower.close(True)

    def send(self, pending: PendingBatch) -> None:
        """Batches that the log would carry from leader to follower."""
        start = self.writer.position
        parts = None if pending.parts is None else [pending.parts.read(index) for index in range(pending.count)]
        self.writer.commit(pending, start + pending.count)
        if parts is not None:
            self.parts += len(parts)
            for index, (preamble, records) in enumerate(parts):
                self.deliver(LogBatch(start + index, records, preamble, 1))
        elif pending.records:
            self.deliver(LogBatch(start, pending.records, pending.preamble, 1))

    def deliver(self, batch: LogBatch) -> None:
        """Apply a batch on the follower."""
        follow(self.applier, [batch])

    def script(self, text: str) -> None:
        for statement in text.split(";\n"):
            pending = self.writer.run_batch([AutocommitRequest(self.gate.examine(statement), ())])
            for answer in pending.answers:
                if answer.error is not None:
                    raise answer.error
            self.send(pending)


def contents(path: str) -> dict[str, object]:
    """Every table's rows and rowids, counters, schema text and the answers of the full-text index."""
    connection = apsw.Connection(path)
    found: dict[str, object] = {}
    tables = connection.execute(
        "select name, wr from pragma_table_list where schema = 'main' and type in ('table', 'shadow')"
        " and name not in ('sqlite_schema', 'sqlite_sequence', 'triplicate_state') order by name"
    ).fetchall()
    for name, without_rowid in tables:
        # ANALYZE visits tables in the order of a hash table in memory, so its rows agree but their rowids differ.
        bare = bool(without_rowid) or str(name).startswith("sqlite_stat")
        rows = connection.execute(f'select {"" if bare else "rowid, "} * from "{name}"').fetchall()
        found[str(name)] = sorted(([(type(value).__name__, value) for value in row] for row in rows), key=repr)
    found["counters"] = sorted(connection.execute("select name, seq from sqlite_sequence"))
    found["schema"] = sorted(connection.execute("select type, name, tbl_name, sql from sqlite_schema").fetchall(), key=repr)
    found["user_version"] = connection.execute("pragma user_version").fetchall()
    found["state"] = connection.execute("select database, position, epoch, batch, schema_version from triplicate_state").fetchall()
    for (name,) in connection.execute("select name from sqlite_schema where sql like '%using fts5%'").fetchall():
        for word in ("alpha", "beta", "gamma"):
            found[f"match {name} {word}"] = sorted(connection.execute(f'select rowid from "{name}" where "{name}" match ?', (word,)))
        connection.execute(f'insert into "{name}"("{name}") values(\'integrity-check\')')
    connection.close(True)
    return found


def literal(chance: random.Random) -> str:
    value = chance.choice(
        [
            *(chance.randrange(20), chance.randrange(20) / 2, chance.choice("abcdefghijAB"), None, bytes([chance.randrange(4)])),
            *(f"txt{chance.randrange(15)}", chance.randrange(-3, 9), "é" + chance.choice("ab"), 2**62, -0.0),
        ]
    )
    return apsw.format_sql_value(value)


def statement(chance: random.Random) -> str:
    """A random changing statement; many of them fail."""
    table = chance.choice("aaabbbccddeegghhppqqfr")
    pick = chance.random()
    conflict = chance.choice(["", "", "", "or replace", "or ignore", "or fail", "or abort", "or rollback"])
    return _STATEMENTS[table](chance, pick, conflict)


def _number(chance: random.Random) -> str:
    return str(chance.randrange(1, 25))


def _key(chance: random.Random) -> str:
    return "null" if chance.random() < 0.1 else repr(chance.choice("abcdefgABC"))


def _a(chance: random.Random, pick: float, conflict: str) -> str:
    one, two = _number(chance), _number(chance)
    choices = [
        f"insert {conflict} into a values({one}, {literal(chance)}, {literal(chance)}, {literal(chance)})",
        f"insert {conflict} into a values({one}, {literal(chance)}, {literal(chance)}, {literal(chance)}) returning id, u",
        f"update {conflict} a set u = w, w = u where id = {one}",
        f"update a set id = id + {one} where id = {two}",
        f"update {conflict} a set u = {literal(chance)}, w = {literal(chance)} where id < {one}",
        f"update a set u = u || 'x' where id in ({one}, {two})",
        f"delete from a where id = {one}",
        f"update a set id = -id where id in ({one}, {two})",
    ]
    return choices[int(pick * len(choices))]


def _b(chance: random.Random, pick: float, conflict: str) -> str:
    choices = [
        f"insert {conflict} into b values({_key(chance)}, {literal(chance)}, {_number(chance)})",
        f"insert into b values({_key(chance)}, {literal(chance)}, 7) on conflict(k) do update set v = excluded.v, n = n + 1",
        f"update {conflict} b set k = {_key(chance)} where k = {_key(chance)}",
        f"update {conflict} b set n = n + 1 where n > {_number(chance)}",
        f"delete from b where k = {_key(chance)}",
    ]
    return choices[int(pick * len(choices))]


def _c(chance: random.Random, pick: float, _conflict: str) -> str:
    choices = [
        f"insert into c values({literal(chance)}, {literal(chance)}, {literal(chance)})",
        f"insert into c(rowid, x) values({_number(chance)}, {literal(chance)})",
        "insert into c select y, x, z from c limit 3",
        f"update c set y = {literal(chance)} where x = {literal(chance)}",
        f"delete from c where x = {literal(chance)} or rowid = {_number(chance)}",
        "delete from c where random() % 2",
    ]
    return choices[int(pick * len(choices))]


def _d(chance: random.Random, pick: float, conflict: str) -> str:
    choices = [
        f"insert {conflict} into d values({chance.choice('abcdABCD')!r}, {_number(chance)}, {literal(chance)})",
        f"update {conflict} d set k = upper(k)",
        f"update {conflict} d set j = j + 1",
        f"update d set v = {literal(chance)} where j = {_number(chance)}",
        f"delete from d where j = {_number(chance)}",
    ]
    return choices[int(pick * len(choices))]


def _e(chance: random.Random, pick: float, conflict: str) -> str:
    choices = [
        f"insert {conflict} into e(p, q) values((select id from a order by random() limit 1), (select k from b limit 1))",
        f"insert {conflict} into e(p, q) values(null, {_key(chance)})",
        f"update e set p = (select max(id) from a) where id = {_number(chance)}",
        "delete from e where id = (select max(id) from e)",
    ]
    return choices[int(pick * len(choices))]


def _g(chance: random.Random, pick: float, conflict: str) -> str:
    choices = [
        f"insert {conflict} into g(id, a, m) values({_number(chance)}, {chance.randrange(100)}, {literal(chance)})",
        f"update g set a = a + 1, m = {literal(chance)} where id < {_number(chance)}",
        f"delete from g where id = {_number(chance)}",
    ]
    return choices[int(pick * len(choices))]


def _h(chance: random.Random, pick: float, conflict: str) -> str:
    choices = [
        f"insert {conflict} into h values({chance.choice('abcdABCD')!r}, {literal(chance)})",
        f"update {conflict} h set k = {chance.choice(['upper(k)', 'lower(k)'])}",
        f"update h set v = {literal(chance)} where k = {chance.choice('abcd')!r}",
        f"delete from h where k = {chance.choice('abcdAB')!r}",
    ]
    return choices[int(pick * len(choices))]


def _p(chance: random.Random, pick: float, conflict: str) -> str:
    value = chance.choice(["null", "'q'", "'z'", _number(chance), str(chance.random())])
    choices = [
        f"insert {conflict} into p(id, a, m, w) values({_number(chance)}, {value}, {value}, {literal(chance)})",
        f"insert {conflict} into p(a, m, w) values({value}, {literal(chance)}, {literal(chance)})",
        f"update {conflict} p set a = {value} where id = {_number(chance)}",
        f"update {conflict} p set a = a + 1",
        f"update {conflict} p set id = id + {_number(chance)} where id < {_number(chance)}",
        "update p set w = -w",
        f"delete from p where id = {_number(chance)}",
    ]
    return choices[int(pick * len(choices))]


def _q(chance: random.Random, pick: float, _conflict: str) -> str:
    choices = [
        f"insert into q(a, b) values({literal(chance)}, {literal(chance)})",
        f"update q set b = {literal(chance)} where a = {literal(chance)}",
        f"delete from q where rowid = {_number(chance)}",
    ]
    return choices[int(pick * len(choices))]


def _f(chance: random.Random, pick: float, conflict: str) -> str:
    words = " ".join(chance.choice(["alpha", "beta", "gamma", "delta"]) for _ in range(3))
    choices = [
        f"insert into f(t) values({words!r})",
        f"insert {conflict} into f(rowid, t) values({_number(chance)}, {words!r})",
        f"update f set t = {words!r} where rowid = {_number(chance)}",
        f"delete from f where rowid = {_number(chance)}",
        "insert into f(f) values('optimize')",
    ]
    return choices[int(pick * len(choices))]


def _r(chance: random.Random, pick: float, conflict: str) -> str:
    low = chance.randrange(50)
    choices = [
        f"insert {conflict} into r values({_number(chance)}, {low}, {low + chance.randrange(9) - 1})",
        f"update r set x1 = x1 + 1 where id = {_number(chance)}",
        f"delete from r where id = {_number(chance)}",
    ]
    return choices[int(pick * len(choices))]


_STATEMENTS = {"a": _a, "b": _b, "c": _c, "d": _d, "e": _e, "g": _g, "h": _h, "p": _p, "q": _q, "f": _f, "r": _r}


def schema_change(chance: random.Random, connection: apsw.Connection) -> str:
    """A random schema change of the existing tables."""
    number = chance.randrange(1000)
    tables = [
        str(name)
        for (name,) in connection.execute(
            "select name from pragma_table_list where schema = 'main' and type = 'table'"
            " and name not like 'sqlite_%' and name not like 'triplicate_%'"
        )
    ]
    table = chance.choice(tables or ["a"])
    columns = [str(name) for (name,) in connection.execute("select name from pragma_table_xinfo(?) where hidden = 0", (table,))]
    column = chance.choice(columns or ["x"])
    return chance.choice(
        [
            f"create table t{number}(id integer primary key, a, b unique)",
            f'create table if not exists "t {number}"(a, b, rowid)',
            f"create table t{number}(k text primary key, v, w default 3) without rowid",
            f"create table t{number}(id integer primary key autoincrement, a, g as (a + 1) virtual)",
            f"create table t{number}(id integer primary key, p references {table} on delete cascade)",
            f"create table t{number} as select * from {table}",
            f"create table t{number} as select 1 as one, 'two' as two, {column} from {table}",
            f"create virtual table v{number} using fts5(x)",
            f"create index i{number} on {table}({column})",
            f"create view w{number} as select * from {table}",
            f"alter table {table} add column c{number} default {number}",
            f"alter table {table} rename to n{number}",
            f"alter table {table} rename column {column} to o{number}",
            f"alter table {table} drop column {column}",
            f"alter table {table} set (change_images = {chance.choice(['full', 'keys'])})",
            f"drop table {table}",
            f"drop table if exists {table}",
            f"create trigger g{number} after insert on {table} begin delete from {table} where rowid % 5 = 0; end",
            f"pragma user_version = {number}",
            "analyze",
            "analyze a",
            "reindex",
        ]
    )


def generic_change(chance: random.Random, connection: apsw.Connection) -> str | None:
    """A random change of any existing table."""
    tables = [
        str(name)
        for (name,) in connection.execute(
            "select name from pragma_table_list where schema = 'main' and type in ('table', 'virtual')"
            " and name not like 'sqlite_%' and name not like 'triplicate_%'"
        )
    ]
    table = chance.choice(tables)
    columns = [str(name) for (name,) in connection.execute("select name from pragma_table_xinfo(?) where hidden = 0", (table,))]
    if not columns:
        return None
    column = chance.choice(columns)
    listed = ", ".join(columns)
    values = ", ".join(literal(chance) for _ in columns)
    return chance.choice(
        [f'insert or ignore into "{table}"({listed}) values({values})'] * 3
        + [f'update or ignore "{table}" set {column} = {literal(chance)}', f'delete from "{table}" where {column} = {literal(chance)}']
    )


def examined(pair: Pair, sql: str, *, on_writer: bool) -> Prepared | None:
    """A statement through the gate, or None if the gate refuses it."""
    gate = pair.writer.authorizer if on_writer else pair.gate
    try:
        prepared = gate.examine(sql)
    except SqlError:
        return None
    return prepared if prepared.kind in (StatementKind.WRITE, StatementKind.SCHEMA) else None


def transaction(pair: Pair, chance: random.Random, *, schema_changes: bool) -> int:
    """Run one interactive transaction with savepoints and failures; return the number of statements tried."""
    writer = pair.writer
    writer.begin()
    names: list[str] = []
    tried = 0
    connection = writer._connection
    try:
        for _ in range(chance.randrange(1, 9)):
            pick = chance.random()
            if pick < 0.08:
                names.append(f"s{len(names)}")
                writer.savepoint(names[-1])
            elif pick < 0.16 and names:
                name = chance.choice(names)
                index = names.index(name)
                if pick < 0.12:
                    writer.rollback_to(name)
                    del names[index + 1 :]
                else:
                    writer.release(name)
                    del names[index:]
            sql: str | None = statement(chance)
            if schema_changes:
                sql = schema_change(chance, connection) if chance.random() < 0.35 else generic_change(chance, connection)
            prepared = examined(pair, sql or "", on_writer=True)
            if prepared is None:
                continue
            tried += 1
            try:
                writer.run(prepared, ())
            except SqlError:
                continue
        pending = writer.finish((), "")
    except TransactionLost:
        return tried
    except SqlError:
        writer.rollback()
        return tried
    pair.send(pending)
    return tried


def group(pair: Pair, chance: random.Random) -> int:
    """One group commit of statements, each its own transaction."""
    requests = []
    for _ in range(chance.randrange(1, 6)):
        prepared = examined(pair, statement(chance), on_writer=False)
        if prepared is not None:
            requests.append(AutocommitRequest(prepared, (), request_id=f"r{chance.randrange(10**6)}" if chance.random() < 0.3 else ""))
    pair.send(pair.writer.run_batch(requests))
    return len(requests)
