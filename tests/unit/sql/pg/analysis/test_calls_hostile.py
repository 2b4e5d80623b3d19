"""Every function of the list in `analysis.calls`, every operator and every cast gets every kind of value that is made to hurt, on a
reader and on the writer.

The lists are the code's own, so a new function is tried at once. A statement may fail; it must fail as a statement.
"""

from __future__ import annotations

import asyncio.events
import gc
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processor_time import within
from tests.unit.sql.pg.node_rig import ServedCluster, play_served
from tests.unit.sql.pg.raw_client import RawClient, query
from triplicate.sql.pg.analysis.calls import FUNCTIONS
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import CAST_NAMES

EVERY = int(os.environ.get("HOSTILE_EVERY", "19"))
"""One statement in this number is run; `make check-deep` runs all."""
PARTS = 4
ARITIES = (0, 1, 2)
CALLBACK_S = 0.05
"""Bound of one callback of the loop, in seconds of processor time."""
STATEMENT_S = 2.0
"""Bound of a statement, in seconds of processor time of the whole process."""
VALUES = {
    types.INT8: ("9223372036854775807", "(-9223372036854775807 - 1)", "0", "-1", "null"),
    types.NUMERIC: ("1e131071::numeric", "'1e-16383'::numeric", "99999999999999999999999999999999.5"),
    types.FLOAT8: ("1e308::float8", "'infinity'::float8", "'nan'::float8", "5e-324::float8"),
    types.TEXT: ("repeat('x', 1000000)", "''", "repeat('(', 1000)", "'%s%1$s%'", "chr(1114111)"),
    types.BYTEA: (r"'\x'::bytea", "zeroblob(1000000)"),
    types.BOOL: ("true", "null::bool"),
    types.UUID: ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",),
    types.TIMESTAMPTZ: ("'9999-12-31 23:59:59.999999'::timestamp", "'0001-01-01'::date", "'23:59:59.999999'::time"),
    types.JSONB: ("('[' || repeat('[', 400) || repeat(']', 400) || ']')::json", "'{}'::jsonb", "'null'::json"),
}
"""By type. Every type that a function takes or gives is one of them."""
OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "||",
    "=",
    "<",
    "<>",
    "is distinct from",
    "->",
    "->>",
    "~",
    "~*",
    "like",
    "ilike",
    "&",
    "|",
    "#",
    "<<",
    ">>",
)
BROKEN = ("XX000", "57P01", "08006")


def others() -> Iterator[str]:
    """Casts and operators."""
    hostile = [value for values in VALUES.values() for value in values]
    for name, value in itertools.product(CAST_NAMES.values(), hostile):
        yield f"cast({value} as {name})"
    for operator, value in itertools.product(OPERATORS, hostile):
        yield from (f"({value}) {operator} ({value})", f"({value}) {operator} 1", f"'a' {operator} ({value})")


def calls() -> Iterator[str]:
    hostile = [value for values in VALUES.values() for value in values]
    for name, signature in FUNCTIONS.items():
        for arity in ARITIES:
            plain = [
                "'a'" if place < len(signature.arguments) and signature.arguments[place] == types.TEXT else "1" for place in range(arity)
            ]
            if not arity:
                yield f"{name}()"
            for place, value in itertools.product(range(arity), hostile):
                yield f"{name}({', '.join([*plain[:place], value, *plain[place + 1 :]])})"


def test_every_type_of_a_function_has_hostile_values() -> None:
    used = {oid for signature in FUNCTIONS.values() for oid in (signature.result, *signature.arguments) if oid is not None and oid > 0}
    assert used <= set(VALUES)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_call_with_any_value_fails_as_a_statement_or_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    longest = 0.0
    run_callback = asyncio.events.Handle._run

    def measured(self: asyncio.events.Handle) -> None:
        nonlocal longest
        began_s = time.thread_time()
        try:
            run_callback(self)
        finally:
            longest = max(longest, time.thread_time() - began_s)

    async def scene(served: ServedCluster) -> None:
        nonlocal longest
        node, _ = await served.leader()
        client = await RawClient.connect(*(await served.server(node)).address, database="db")
        await client.send(query("create table sink(v text); insert into sink values ('')"))
        gc.disable()

        monkeypatch.setattr(asyncio.events.Handle, "_run", measured)
        chosen = [*itertools.islice(calls(), part, None, EVERY * PARTS), *itertools.islice(others(), part, None, PARTS * (1 + EVERY // 4))]
        try:
            for call in chosen:
                for sql in (f"select {call}", f"update sink set v = ({call})::text"):
                    longest, began_s = 0.0, time.process_time()
                    answers = await client.send(query(sql))
                    assert answers[-1] == "Z I", sql
                    assert not any(answer.endswith(BROKEN) for answer in answers if answer.startswith("E ")), (sql, answers)
                    assert within(longest, CALLBACK_S), sql
                    assert within(time.process_time() - began_s, STATEMENT_S), sql
        finally:
            monkeypatch.setattr(asyncio.events.Handle, "_run", run_callback)
            gc.enable()
        client.close()

    play_served(tmp_path, scene)
