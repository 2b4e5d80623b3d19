"""Answers of a server, and the differences between two of them. Pure except for the functions that run a statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import DataError, pq
from psycopg.adapt import Transformer
from psycopg.pq.abc import PGconn, PGresult

from tests.differential.corpus import Parameter

CLASSES = {
    "bool": (16,),
    "int": (20, 21, 23, 26),
    "float": (700, 701),
    "numeric": (1700,),
    "text": (25, 1042, 1043, 705, 19),
    "bytea": (17,),
    "date": (1082,),
    "time": (1083,),
    "timestamp": (1114,),
    "timestamptz": (1184,),
    "uuid": (2950,),
    "json": (114,),
    "jsonb": (3802,),
}
"""Types by class; a client reads the types of a class alike. Integers of all widths are int8 here, all character types text."""

_CLASS_OF = {oid: name for name, oids in CLASSES.items() for oid in oids}
TYPE_OIDS = {
    "?": 0, "bool": 16, "bytea": 17, "int2": 21, "int4": 23, "int8": 20, "text": 25, "varchar": 1043, "json": 114, "jsonb": 3802,
    "float4": 700, "float8": 701, "date": 1082, "time": 1083, "timestamp": 1114, "timestamptz": 1184, "numeric": 1700, "uuid": 2950,
    "int4array": 1007, "int8array": 1016, "textarray": 1009, "unknown": 705,
}  # fmt: skip
REFUSALS = ("0A000", "42601", "42883", "42704", "42501")
"""Not supported, a mistake in the statement, no such function, no such object (a type, a collation), not allowed."""
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)


def class_of(oid: int) -> str:
    return _CLASS_OF.get(oid, f"oid {oid}")


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer: a result, or an error if `sqlstate` is set."""

    tag: str = ""
    names: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    sqlstate: str | None = None
    message: str = ""
    parameter_types: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.sqlstate is not None:
            return f"{self.sqlstate} {self.message}"
        shown = "; ".join(", ".join(str(value) for value in row) for row in self.rows[:20])
        columns = ", ".join(f"{name} {class_of(oid)}" for name, oid in zip(self.names, self.types, strict=True))
        asked = f" parameters ({', '.join(class_of(oid) for oid in self.parameter_types)})" if self.parameter_types else ""
        return f"{self.tag} ({columns}) [{shown}]{asked}"


def differences(postgresql: Answer, here: Answer, statement: str) -> list[str]:
    """The parts in which our answer differs: of ``error``, ``tag``, ``names``, ``types``, ``parameters``, ``rows``, ``order``."""
    if postgresql.sqlstate is not None or here.sqlstate is not None:
        return [] if postgresql.sqlstate == here.sqlstate else ["error"]
    found: list[str] = []
    if postgresql.tag != here.tag:
        found.append("tag")
    if postgresql.names != here.names:
        found.append("names")
    if not same_types(postgresql.types, here.types):
        found.append("types")
    if not same_types(postgresql.parameter_types, here.parameter_types):
        found.append("parameters")
    return found + different_rows(postgresql.rows, here.rows, is_ordered=_ORDERED.search(statement) is not None)


def same_types(one: Sequence[int], other: Sequence[int]) -> bool:
    return [class_of(oid) for oid in one] == [class_of(oid) for oid in other]


def different_rows(one: Sequence[tuple[object, ...]], other: Sequence[tuple[object, ...]], *, is_ordered: bool) -> list[str]:
    """``rows`` if the rows differ; ``order`` if a statement with ORDER BY gives them in another order."""
    if sorted(map(repr, one)) != sorted(map(repr, other)):
        return ["rows"]
    return ["order"] if is_ordered and [repr(row) for row in one] != [repr(row) for row in other] else []


def is_refusal(postgresql: Answer, here: Answer, word: str) -> bool:
    """Whether our answer is a clear refusal of a statement that PostgreSQL answers."""
    return postgresql.sqlstate is None and here.sqlstate in REFUSALS and word.lower() in here.message.lower()


# Running.


def simple(connection: PGconn, statement: str) -> Answer:
    """Run it as a simple query, with values as text."""
    return _answer(connection.exec_(statement.encode()), connection)


def extended(connection: PGconn, statement: str, parameters: Sequence[Parameter], *, binary: bool) -> Answer:
    """Run it by Parse, Describe, Bind and Execute. `binary` requests binary values, and sends typed parameters in binary."""
    prepared = connection.prepare(b"", statement.encode(), [TYPE_OIDS[one.type] for one in parameters])
    if prepared.status != pq.ExecStatus.COMMAND_OK:
        return _answer(prepared, connection)
    described = connection.describe_prepared(b"")
    if described.status != pq.ExecStatus.COMMAND_OK:
        return _answer(described, connection)
    told = tuple(described.param_type(index) for index in range(described.nparams))
    values = [None if one.value is None else one.value.encode() for one in parameters]
    formats = [0] * len(values)
    if binary:
        values, formats = _in_binary(parameters)
    # NULL is None; the signature does not say so.
    result = connection.exec_prepared(b"", values, formats, 1 if binary else 0)  # type: ignore[arg-type]
    return _answer(result, connection, told)


def _in_binary(parameters: Sequence[Parameter]) -> tuple[list[bytes | None], list[int]]:
    """Parameters with a given type in binary; arrays, values of another type, and untyped ones as text."""
    transformer = Transformer()
    values: list[bytes | None] = []
    formats: list[int] = []
    for one in parameters:
        oid = TYPE_OIDS[one.type]
        if one.value is None or one.type == "?" or one.type.endswith("array"):
            values.append(None if one.value is None else one.value.encode())
            formats.append(0)
            continue
        try:
            loaded = transformer.get_loader(oid, pq.Format.TEXT).load(one.value.encode())
        except (ValueError, DataError):
            values.append(one.value.encode())
            formats.append(0)
            continue
        dumper = transformer.adapters.get_dumper_by_oid(oid, pq.Format.BINARY)(type(loaded), transformer)
        values.append(bytes(dumper.dump(loaded) or b""))
        formats.append(1)
    return values, formats


def _answer(result: PGresult, connection: PGconn, told: tuple[int, ...] = ()) -> Answer:
    if connection.status == pq.ConnStatus.BAD:
        return Answer(sqlstate="lost", message=connection.get_error_message())
    if result.status in (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT):
        raise ValueError("COPY is not for this comparison: nothing here speaks its protocol")
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY):
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b"?"
        fields = (pq.DiagnosticField.MESSAGE_PRIMARY, pq.DiagnosticField.MESSAGE_DETAIL, pq.DiagnosticField.MESSAGE_HINT)
        texts = [(result.error_field(field) or b"").decode() for field in fields]
        return Answer(sqlstate=state.decode(), message=" | ".join(text for text in texts if text))
    columns = range(result.nfields)
    types = tuple(result.ftype(column) for column in columns)
    names = tuple((result.fname(column) or b"").decode() for column in columns)
    rows = tuple(tuple(_value(result, row, column) for column in columns) for row in range(result.ntuples))
    return Answer((result.command_status or b"").decode(), names, types, rows, parameter_types=told)


def _value(result: PGresult, row: int, column: int) -> object:
    """The text of a value. A binary one is loaded by psycopg first, since widths of integers differ."""
    data = result.get_value(row, column)
    if data is None:
        return None
    if result.fformat(column) == pq.Format.TEXT:
        return data.decode()
    try:
        return Transformer().get_loader(result.ftype(column), pq.Format.BINARY).load(data)
    except Exception as error:
        # If the loader fails on wrong bytes, the comparison shows the difference.
        return f"{data!r} cannot be read as oid {result.ftype(column)}: {error}"
