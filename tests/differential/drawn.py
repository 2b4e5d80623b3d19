"""Expressions drawn at random over columns, constants and parameters of every type, the same ones for a seed each time. Pure.

Both servers should answer the drawn statements alike. Numbers fit PostgreSQL's 32 bits, and dates are within the years 1 to 9999. Operators
that fail for some values are drawn for other values only, since the servers differ in which part of an expression fails first.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tests.differential.corpus import Parameter, Statement

TABLE = (
    (
        "CREATE TABLE e (id int PRIMARY KEY, i int, j bigint, n numeric, r numeric(10,2), f float8, t text, v varchar(10), w text, p bool, "
        "d date, m timestamp, z timestamptz, h time, u uuid, y bytea)"
    ),
    (
        "INSERT INTO e VALUES"
        " (1, 1, 40, 1.5, 1.50, 0.1, 'abc', 'ABC', '12', true, '2020-02-29', '2020-02-29 12:34:56.789', '2020-02-29 12:34:56+00',"
        " '04:05:06', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00ff'),"
        " (2, -7, -3, -2.5, -0.05, -2.5, 'A%_b', '', ' 7 ', false, '1999-12-31', '1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.5+00',"
        " '00:00', '00000000-0000-0000-0000-000000000000', '\\x'),"
        " (3, 0, 0, 0, 0, 0, '', '12', '-3', NULL, '2000-01-01', '2000-01-01 00:00:00', '2000-01-01 00:00:00+02', '23:59:59.999999',"
        " 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\\x616263'),"
        " (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),"
        " (5, 12, 12, 123.456, 99.99, 1e10, 'été 12', 'x\\y', '0', true, '1901-01-01', '2999-12-31 23:59:59', '1901-01-01 00:00:00+00',"
        " '12:00:00.5', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', '\\xdeadbeef')"
    ),
)

_COLUMNS = {
    "int": ("i", "j", "id"), "num": ("n", "r"), "float": ("f",), "text": ("t", "v"), "bool": ("p",), "date": ("d",), "moment": ("m",),
    "zoned": ("z",), "time": ("h",), "uuid": ("u",), "bytes": ("y",),
}  # fmt: skip
_CONSTANTS = {
    "int": ("0", "1", "2", "(-3)", "7", "'7'::int2", "12::int8", "'3'::int"),
    "num": ("1.5", "0.1", "(-2.5)", "2.50", "12.345::numeric(6,2)", "(-7)::numeric", "'0.125'::numeric", "1e2"),
    "float": ("0.5::float8", "(-2.5)::float8", "3::float8", "0::float8", "'1e5'::float8", "123456.789::float8"),
    "text": ("'a'", "''", "'abc'", "'ABC'", "'12'", "'a%b'", "'été'", "'x_y'", "'a\\b'", "'it''s'", "E'a\\tb'"),
    "bool": ("true", "false", "(1 = 1)", "'yes'::bool"),
    "date": ("'2020-02-29'::date", "date '1999-12-31'", "'2024-1-5'::date"),
    "moment": ("'2020-02-29 01:02:03'::timestamp", "timestamp '1999-12-31 23:59:59.5'", "'2021-03-04T05:06:07.123456'::timestamp"),
    "zoned": ("'2020-02-29 01:02:03+02'::timestamptz", "timestamptz '1999-12-31 23:59:59.5Z'"),
    "time": ("'04:05:06'::time", "time '23:59:59.5'", "'00:00'::time"),
    "uuid": ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", "'00000000000000000000000000000000'::uuid"),
    "bytes": ("'\\x00ff'::bytea", "'abc'::bytea", "''::bytea"),
}
_VALUES = {
    "int": ("7", "-3", "0"), "num": ("1.5", "-2.50", "0", "0.001"), "float": ("0.5", "-2.5", "3"), "text": ("abc", "", "a%", "été"),
    "bool": ("true", "false"), "date": ("2020-02-29",), "moment": ("2020-02-29 01:02:03", "1999-12-31 23:59:59.5"),
    "zoned": ("2020-02-29 01:02:03+00", "1999-12-31 23:59:59.5+02"), "time": ("04:05:06", "23:59:59.5"),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",), "bytes": ("\\x00ff", "\\x"),
}  # fmt: skip
_NAMES = {
    "int": "int8", "num": "numeric", "float": "float8", "text": "text", "bool": "bool", "date": "date", "moment": "timestamp",
    "zoned": "timestamptz", "time": "time", "uuid": "uuid", "bytes": "bytea",
}  # fmt: skip
_KINDS = tuple(_COLUMNS)
_NUMBERS = ("int", "num", "float")
_DAYS = ("date", "moment", "zoned")
_PATTERNS = ("'%a%'", "'A%'", "'_'", "'a\\_b%'", "'a\\%%'", "''", "'%'", "'__%'", "'[a]%'", "'*'", "'a?c'")
_REGULAR = ("'^a'", "'b$'", "'[a-c]+'", "'a.c'", "'^\\d+$'", "'x|y'", "'(ab|c)'", "'\\w+'", "'[^a]'", "'[[:upper:]]'", "'É'")
_DAY_FIELDS = ("year", "month", "day", "dow", "doy", "isodow", "week", "isoyear", "quarter", "century", "decade", "millennium", "epoch")
_CLOCK_FIELDS = ("hour", "minute", "second", "milliseconds", "microseconds", "epoch")
_CUTS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "century")


class ExpressionGrammar:
    """Draws one statement."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._parameters: list[Parameter] = []
        self._rules: dict[str, Callable[[int], Sequence[Callable[[], str]]]] = {
            "int": self._int, "num": self._num, "float": self._float, "text": self._text, "bool": self._bool, "date": self._date,
            "moment": self._moment, "zoned": self._zoned, "bytes": self._bytes,
        }  # fmt: skip

    def statement(self) -> Statement:
        shapes = (self._single, self._single, self._filtered, self._ordered, self._derived)
        text = self._random.choice(shapes)()
        # Parameters drawn for a discarded part are removed, and the others renumbered.
        used: dict[int, int] = {}
        text = re.sub(r"\$(\d+)", lambda match: f"${used.setdefault(int(match[1]), len(used) + 1)}", text)
        return Statement(text, "drawn", tuple(self._parameters[number - 1] for number in used))

    # Statements.

    def _single(self) -> str:
        return f"SELECT {self._draw(self._one(_KINDS), 3)} AS x FROM e WHERE id = {self._random.randint(1, 5)}"

    def _filtered(self) -> str:
        return f"SELECT id FROM e WHERE {self._draw('bool', 3)} ORDER BY id"

    def _ordered(self) -> str:
        kind = self._one(("num", "num", "float", "int", "text", "date"))
        return f"SELECT id, {self._draw('bool', 2)} AS x FROM e ORDER BY coalesce({self._draw(kind, 2)}, {self._one(_COLUMNS[kind])}), id"

    def _derived(self) -> str:
        kind = self._one(("num", "float"))
        first, second = self._draw("num", 2), self._draw(kind, 2)
        asked = self._one(("x / 2 > 1, x < 5, x + 1 > 2", "x > 0.3, -x < 1", "x BETWEEN 0 AND 1, x / 4 = 0.25"))
        return f"SELECT {asked} FROM (SELECT {first} AS x FROM e UNION ALL SELECT {second} FROM e) s ORDER BY x, 1, 2"

    # Expressions.

    def _one(self, choices: Sequence[str]) -> str:
        return self._random.choice(choices)

    def _draw(self, kind: str, depth: int) -> str:
        rule = self._rules.get(kind)
        if depth <= 0 or rule is None or self._random.random() < 0.15:
            return self._leaf(kind)
        if self._random.random() < 0.15:
            return self._conditional(kind, depth - 1)
        if self._random.random() < 0.12:
            return self._cast(kind, depth - 1)
        return self._random.choice(rule(depth - 1))()

    def _leaf(self, kind: str) -> str:
        chance = self._random.random()
        if chance < 0.5:
            return self._one(_COLUMNS[kind])
        if chance > 0.65 or len(self._parameters) >= 4:
            return self._one(_CONSTANTS[kind])
        name, is_open = _NAMES[kind], self._random.random() < 0.4
        self._parameters.append(Parameter("?" if is_open else name, self._one(_VALUES[kind])))
        return f"${len(self._parameters)}" + (f"::{name}" if is_open else "")

    def _conditional(self, kind: str, depth: int) -> str:
        other = self._one(("int", "num", kind)) if kind == "float" else "int" if kind == "num" and self._random.random() < 0.5 else kind
        one, second, truth = self._draw(kind, depth), self._draw(other, depth), self._draw("bool", depth)
        if kind in ("bool", "bytes"):
            return f"CASE WHEN {truth} THEN {one} ELSE {second} END"
        return self._one(
            (
                f"CASE WHEN {truth} THEN {one} ELSE {second} END",
                f"CASE WHEN {truth} THEN {second} WHEN {one} IS NULL THEN {second} END",
                f"coalesce({one}, {second})",
                f"nullif({one}, {second})",
                f"greatest({second}, {one})",
                f"least({one}, {second})",
            )
        )

    def _cast(self, kind: str, depth: int) -> str:
        sources = {
            "int": ("w", "id::float8", "n", "p"), "num": ("w", "i", "f"), "float": ("w", "n", "i"), "bool": ("id",),
            "date": ("m", "z"), "moment": ("d", "z"), "zoned": ("d", "m"),
        }  # fmt: skip
        if kind == "text":
            source = self._one(
                ("i", "j", "f", "r", "p", "d", "m", "z", "h", "u", "y", self._draw("int", depth), self._draw("moment", depth))
            )
            return f"({source})::{self._one(('text', 'varchar', 'varchar(3)'))}"
        if kind not in sources:
            return self._draw(kind, depth)
        name = self._one(("numeric", "numeric(9,2)")) if kind == "num" else "int" if kind == "int" else _NAMES[kind]
        digits = self._one(("", "(0)", "(3)")) if kind in ("moment", "zoned") else ""
        return self._one(("({0})::{1}", "CAST({0} AS {1})")).format(self._one(sources[kind]), name + digits)

    def _int(self, depth: int) -> Sequence[Callable[[], str]]:
        one, text, day = self._draw("int", depth), self._draw("text", depth), self._draw(self._one(_DAYS), depth)
        return (
            lambda: f"({one} {self._one(('+', '-'))} {self._draw('int', depth)})",
            lambda: f"({self._leaf('int')} * {self._leaf('int')})",
            lambda: f"({one} {self._one(('/', '%'))} {self._one(('2', '(-3)', '7'))})",
            lambda: f"{self._one(('abs', '+', '-', '~'))}({one})",
            lambda: f"{self._one(('length', 'octet_length', 'ascii'))}({text})",
            lambda: f"strpos({text}, {self._leaf('text')})",
            lambda: f"position({self._leaf('text')} IN {text})",
            lambda: f"(d - {self._one(_CONSTANTS['date'])})",
            lambda: f"({one} {self._one(('&', '|', '>>'))} {self._one(('1', '2', '7'))})",
            lambda: f"octet_length({self._draw('bytes', depth)})",
            lambda: f"extract({self._one(_DAY_FIELDS[:-1])} FROM {day})::int",
            lambda: f"({self._draw('float', depth - 1)} > 1)::int",
        )

    def _num(self, depth: int) -> Sequence[Callable[[], str]]:
        one, other = self._draw("num", depth), self._draw(self._one(("num", "int")), depth)
        return (
            lambda: f"({one} {self._one(('+', '-', '*'))} {other})",
            lambda: f"({other} - {one})",
            lambda: f"({one} / {self._one(('3', '2.5', '(-7)', '0.3'))})",
            lambda: f"({one} % {self._one(('3', '2.5'))})",
            lambda: f"{self._one(('abs', 'ceil', 'floor', 'round', 'trunc', 'sign', '-'))}({one})",
            lambda: f"{self._one(('round', 'trunc'))}({one}, {self._one(('0', '1', '2'))})",
            lambda: f"extract({self._one(_DAY_FIELDS + _CLOCK_FIELDS)} FROM {self._draw(self._one(('moment', 'zoned')), depth)})",
            lambda: f"extract({self._one(_CLOCK_FIELDS)} FROM h)",
            lambda: f"div({one}, {self._one(('2', '0.7'))})",
        )

    def _float(self, depth: int) -> Sequence[Callable[[], str]]:
        one, other = self._draw("float", depth), self._draw(self._one(_NUMBERS), depth)
        return (
            lambda: f"({one} {self._one(('+', '-', '*'))} {other})",
            lambda: f"({other} * {one})",
            lambda: f"({one} / {self._one(('2', '0.25', '(-3)', '7::float8'))})",
            lambda: f"{self._one(('abs', 'ceil', 'floor', 'round', 'trunc', 'sign', '-'))}({one})",
            lambda: f"{self._one(('ceil', 'floor', 'round', 'sign'))}({self._draw('int', depth)})",
            lambda: f"date_part('{self._one(_DAY_FIELDS + _CLOCK_FIELDS)}', {self._draw(self._one(('moment', 'zoned')), depth)})",
            lambda: f"sqrt(abs({one})::float8)",
            lambda: f"power({self._leaf('float')}, 2)",
        )

    def _text(self, depth: int) -> Sequence[Callable[[], str]]:
        one, other = self._draw("text", depth), self._draw("text", depth)
        written = self._one(("i", "f", "p", "d", "m", "z", "h", "u", "r"))
        count = self._one(("0", "1", "2", "-1", "5"))
        return (
            lambda: f"({one} || {other})",
            lambda: f"({one} || {written})",
            lambda: f"{self._one(('lower', 'upper', 'initcap', 'reverse', 'md5', 'trim', 'ltrim', 'rtrim'))}({one})",
            lambda: f"{self._one(('substr', 'substring'))}({one}, {count}, {self._one(('0', '1', '2', '9'))})",
            lambda: f"substring({one} FROM {count} FOR {self._one(('0', '1', '3'))})",
            lambda: f"replace({one}, {other}, {self._leaf('text')})",
            lambda: f"{self._one(('left', 'right', 'repeat'))}({one}, {count})",
            lambda: f"{self._one(('lpad', 'rpad'))}({one}, {count}, {other})",
            lambda: f"split_part({one}, {other}, {self._one(('1', '2', '-1'))})",
            lambda: f"translate({one}, {other}, {self._leaf('text')})",
            lambda: f"concat(t, {written}, v)",
            lambda: f"concat_ws({self._one(('t', chr(39) + ',' + chr(39)))}, v, {written}, p)",
            lambda: f"trim({self._one(('both', 'leading', 'trailing'))} {other} FROM {one})",
            lambda: f"{self._one(('btrim', 'ltrim', 'rtrim'))}({one}, {other})",
            lambda: f"format({self._one(('%s', 'a%sb', '%5s|', '%-5s|')).join((chr(39), chr(39)))}, {written})",
            lambda: f"({self._one(('i', 'f', 'p', 'd', 'm', 'z', 'h', 'u', 'y', 'r'))})::text",
        )

    def _bool(self, depth: int) -> Sequence[Callable[[], str]]:
        kinds = self._random.choice((_NUMBERS, _NUMBERS, ("text",), ("text",), _DAYS, ("bool",), ("time",), ("uuid",), ("bytes",)))
        one, other, third = (self._draw(self._one(kinds), depth) for _ in range(3))
        text, truth = self._draw("text", depth), self._draw("bool", depth)
        comparison = self._one(("=", "<>", "<", "<=", ">", ">=", "!=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
        return (
            lambda: f"({one} {comparison} {other})",
            lambda: f"({one} {comparison} {other})",
            lambda: f"({one} {comparison} {other})",
            lambda: f"({truth} {self._one(('AND', 'OR'))} {self._draw('bool', depth)})",
            lambda: f"(NOT {truth})",
            lambda: f"({one} IS {self._one(('NULL', 'NOT NULL'))})",
            lambda: f"({truth} IS {self._one(('TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE', 'UNKNOWN'))})",
            lambda: f"({one} {self._one(('IN', 'NOT IN'))} ({other}, {third}))",
            lambda: f"({one} {self._one(('BETWEEN', 'NOT BETWEEN'))} {other} AND {third})",
            lambda: f"({text} {self._one(('LIKE', 'NOT LIKE', 'ILIKE', 'NOT ILIKE'))} {self._one(_PATTERNS)})",
            lambda: f"({text} {self._one(('~', '~*', '!~', '!~*'))} {self._one(_REGULAR)})",
            lambda: f"starts_with({text}, {self._leaf('text')})",
        )

    def _date(self, depth: int) -> Sequence[Callable[[], str]]:
        return (
            lambda: f"({self._draw('date', depth)} {self._one(('+', '-'))} {self._one(('1', '31', '366', 'id'))})",
            lambda: f"({self._one(('1', 'id'))} + {self._draw('date', depth)})",
            lambda: f"date_trunc('{self._one(_CUTS)}', {self._draw('moment', depth)})::date",
        )

    def _moment(self, depth: int) -> Sequence[Callable[[], str]]:
        return (
            lambda: f"date_trunc('{self._one(_CUTS)}', {self._draw('moment', depth)})",
            lambda: f"({self._draw('zoned', depth)} AT TIME ZONE 'UTC')",
        )

    def _zoned(self, depth: int) -> Sequence[Callable[[], str]]:
        return (
            lambda: f"date_trunc('{self._one(_CUTS)}', {self._draw('zoned', depth)})",
            lambda: f"({self._draw('moment', depth)} AT TIME ZONE 'UTC')",
            lambda: f"to_timestamp({self._one(('0', '1.5', '1e9', '-1', 'i'))})",
        )

    def _bytes(self, depth: int) -> Sequence[Callable[[], str]]:
        return (
            lambda: f"({self._draw('bytes', depth)} || {self._draw('bytes', depth)})",
            lambda: f"substr({self._draw('bytes', depth)}, {self._one('0123')}, {self._one('012')})",
        )


def statements(first: int, count: int) -> list[Statement]:
    """One statement for each seed; its index is the seed."""
    found = [(seed, ExpressionGrammar(seed).statement()) for seed in range(first, first + count)]
    return [Statement(one.text, f"seed {seed}", one.parameters) for seed, one in found]
