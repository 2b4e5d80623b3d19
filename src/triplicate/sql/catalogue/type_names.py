"""The types that clients see: object ids, names, and the type for a column's declared type. Pure.

The catalogue has the declared type of a column: ``INTEGER`` is int4, ``VARCHAR(20)`` is varchar with its length. Tools that compare a
schema with their model expect that. The columns of results have the types of SQLite's values: every integer is int8.
Source: PostgreSQL 15, catalogue ``pg_type``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """One row of pg_type. `length` is in bytes, -1 if it varies; `array` is the oid of the type of its arrays; `shown` is the SQL name."""

    oid: int
    name: str
    length: int
    category: str
    array: int
    shown: str
    element: int = 0
    collation: int = 0
    preferred: bool = False

    @property
    def is_by_value(self) -> bool:
        return self.length in (1, 2, 4, 8)

    def function(self, suffix: str) -> str:
        """The name of PostgreSQL's function that reads or writes values of the type; `suffix` is in, out, recv or send."""
        if self.element and self.name[0] == "_":
            return f"array_{suffix}"
        return f"{self.name}_{suffix}" if self.name in _UNDERSCORED else f"{self.name}{suffix}"

    @property
    def alignment(self) -> str:
        return {1: "c", 2: "s", 8: "d", 16: "c", 64: "c"}.get(self.length, "i")

    @property
    def storage(self) -> str:
        return "m" if self.oid == NUMERIC else "x" if self.length < 0 and not self.name.endswith("vector") else "p"


_UNDERSCORED = frozenset(("json", "jsonb", "date", "time", "timestamp", "timestamptz", "numeric", "uuid", "record", "void", "trigger"))
"""Types whose functions have an underscore: ``date_in`` and ``int4in``."""
TEXT, NUMERIC, BPCHAR, VARCHAR = 25, 1700, 1042, 1043
_BASE = (
    TypeFacts(16, "bool", 1, "B", 1000, "boolean", preferred=True),
    TypeFacts(17, "bytea", -1, "U", 1001, "bytea"),
    TypeFacts(18, "char", 1, "Z", 1002, '"char"'),
    TypeFacts(19, "name", 64, "S", 1003, "name", element=18, collation=950),
    TypeFacts(20, "int8", 8, "N", 1016, "bigint"),
    TypeFacts(21, "int2", 2, "N", 1005, "smallint"),
    TypeFacts(22, "int2vector", -1, "A", 1006, "int2vector", element=21),
    TypeFacts(23, "int4", 4, "N", 1007, "integer"),
    TypeFacts(25, "text", -1, "S", 1009, "text", collation=100, preferred=True),
    TypeFacts(26, "oid", 4, "N", 1028, "oid", preferred=True),
    TypeFacts(30, "oidvector", -1, "A", 1013, "oidvector", element=26),
    TypeFacts(114, "json", -1, "U", 199, "json"),
    TypeFacts(700, "float4", 4, "N", 1021, "real"),
    TypeFacts(701, "float8", 8, "N", 1022, "double precision", preferred=True),
    TypeFacts(1042, "bpchar", -1, "S", 1014, "character", collation=100),
    TypeFacts(1043, "varchar", -1, "S", 1015, "character varying", collation=100),
    TypeFacts(1082, "date", 4, "D", 1182, "date"),
    TypeFacts(1083, "time", 8, "D", 1183, "time without time zone"),
    TypeFacts(1114, "timestamp", 8, "D", 1115, "timestamp without time zone"),
    TypeFacts(1184, "timestamptz", 8, "D", 1185, "timestamp with time zone", preferred=True),
    TypeFacts(1700, "numeric", -1, "N", 1231, "numeric"),
    TypeFacts(2950, "uuid", 16, "U", 2951, "uuid"),
    TypeFacts(3802, "jsonb", -1, "U", 3807, "jsonb"),
)
_ARRAYS = tuple(
    TypeFacts(base.array, "_" + base.name, -1, "A", 0, base.shown + "[]", element=base.oid, collation=base.collation) for base in _BASE
)
_PSEUDO = (
    TypeFacts(2249, "record", -1, "P", 0, "record"),
    TypeFacts(2278, "void", 4, "P", 0, "void"),
    TypeFacts(2279, "trigger", 4, "P", 0, "trigger"),
)
"""Types of results of functions, which no column has."""
_PSEUDO_OIDS = {each.oid for each in _PSEUDO}
TYPES = {each.oid: each for each in (*_BASE, *_ARRAYS, *_PSEUDO)}
"""Maps an oid to its type."""
TYPE_FUNCTIONS = frozenset(facts.function(suffix) for facts in TYPES.values() for suffix in ("in", "out", "recv", "send"))
"""Functions that the types name."""
_NAMES = {each.name: each.oid for each in TYPES.values()} | {each.shown: each.oid for each in TYPES.values()}
_NAMES |= {
    "int": 23,
    "char": 1042,
    "float": 701,
    "decimal": 1700,
    "time": 1083,
    "timestamp": 1114,
    "serial": 23,
    "serial4": 23,
    "serial2": 21,
    "smallserial": 21,
    "serial8": 20,
    "bigserial": 20,
    "datetime": 1114,
    "string": 25,
    "clob": 25,
    "blob": 17,
}
_SPELLED = re.compile(
    r"^(?P<name>[^(\[]*)(?:\(\s*(?P<first>\d+)\s*(?:,\s*(?P<second>\d+)\s*)?\))?(?P<rest>[^(\[]*)(?P<array>(?:\[\d*\])*)\s*$"
)
_HEADER = 4
"""The modifiers of varchar and numeric include four bytes of header in PostgreSQL."""


def type_named(name: str) -> int | None:
    """The oid of a type by its name, as in ``to_regtype``; None for an unknown name.

    Args:
        name: ``int4``, ``integer``, ``varchar(20)``, ``timestamp with time zone``, ``pg_catalog.text``, ``int4[]``, …, or an oid's digits.
    """
    text = " ".join(name.split())
    if text.isdigit():
        return int(text)
    text = text.lower().removeprefix("pg_catalog.")
    if text in ('"char"', '"char"[]'):
        return 18 if text == '"char"' else 1002
    match = _SPELLED.match(text.replace('"', ""))
    if match is None:
        return None
    base = _NAMES.get(" ".join((match["name"] + match["rest"]).split()))
    return base if base is None or not match["array"] else TYPES[base].array or base


def declared_type(declared: str) -> tuple[int, int]:
    """(oid, modifier) of a declared type; modifier -1 without one. A type that PostgreSQL does not have follows SQLite's affinity."""
    match = _SPELLED.match(" ".join(declared.lower().split()))
    oid = type_named(declared)
    if match is None or oid is None or oid in _PSEUDO_OIDS or declared.strip().isdigit():
        return _by_affinity(declared), -1
    if match["array"] or match["first"] is None:
        # A bare `char` is one character long.
        return oid, 1 + _HEADER if oid == BPCHAR and match["name"].strip() != "bpchar" else -1
    first, second = int(match["first"]), int(match["second"] or 0)
    if oid == NUMERIC:
        return oid, (first << 16 | second) + _HEADER
    return oid, first + _HEADER if oid in (BPCHAR, VARCHAR) else -1


def _by_affinity(declared: str) -> int:
    # SQLite's rules of affinity, so that `UNSIGNED BIG INT` is an integer for tools as well.
    upper = declared.upper()
    if "INT" in upper:
        return 20
    if any(part in upper for part in ("CHAR", "CLOB", "TEXT")):
        return TEXT
    if "BLOB" in upper:
        return 17
    return 701 if any(part in upper for part in ("REAL", "FLOA", "DOUB")) else TEXT


def format_type(oid: int | None, modifier: int | None) -> str | None:
    """The SQL name of a type with its modifier, as in ``format_type``; ``???`` for an unknown oid."""
    if oid is None:
        return None
    facts = TYPES.get(oid)
    if facts is None:
        return "-" if oid == 0 else "???"
    if modifier is None or modifier < _HEADER:
        return facts.shown
    size = modifier - _HEADER
    if oid == NUMERIC:
        return f"numeric({size >> 16},{size & 0xFFFF})"
    return f"{facts.shown}({size})" if oid in (BPCHAR, VARCHAR) else facts.shown
