"""Statements that are made to take long: none holds the event loop, and what has a limit says so.

Judged is the processor time of the loop's thread in each callback, at the speed that the machine has meanwhile.
"""

from __future__ import annotations

import asyncio.events
import gc
import time
from pathlib import Path

import pytest

from tests.processor_time import within
from tests.unit.sql.pg.node_rig import ServedCluster, play_served
from tests.unit.sql.pg.raw_client import RawClient, query

CALLBACK_S = 0.05
"""Bound of one callback, in seconds of processor time. The slowest takes a fifth of it without other load."""


def nested(query: str, depth: int) -> str:
    """A query of a query of … of t."""
    text = "t"
    for level in range(depth):
        text = f"({query.format(text)}) s{level}"
    return f"select * from {text}"


STATEMENTS = {
    "constants of IN": ("select 1 where 5 in (" + ", ".join(map(str, range(100_000))) + ")", "C SELECT 1"),
    "rows of VALUES": ("select count(*) from (values " + ", ".join(f"({n}, 'a{n}')" for n in range(20_000)) + ") v", "C SELECT 1"),
    "rows of INSERT": ("insert into t values " + ", ".join(f"({n})" for n in range(20_000)), "C INSERT 0 20000"),
    "terms of OR": ("select 1 where " + " or ".join(f"{n} = 9999" for n in range(10_000)), "C SELECT 1"),
    "terms of AND": ("select 1 where " + " and ".join(f"{n} <> -1" for n in range(10_000)), "C SELECT 1"),
    "mixed terms": ("select 1 where " + " or ".join(f"({n} = 1 and a = {n})" for n in range(5_000)), "E ERROR 42703"),
    "terms of OR, short": ("select 1 where " + " or ".join(f"1={n}" for n in range(500)), "C SELECT 1"),
    "terms of OR over a table": ("delete from t where " + " or ".join(f"a = {n}" for n in range(3_000)), "C DELETE 0"),
    "terms of ||": ("select " + " || ".join(["'a'"] * 10_000), "C SELECT 1"),
    "terms of +": ("select " + "+".join(["1"] * 10_000), "E ERROR 54001"),
    "brackets": ("select " + "(" * 3000 + "1" + ")" * 3000, "E ERROR 54001"),
    "brackets of queries": ("select " + "(select " * 500 + "1" + ")" * 500, "E ERROR 54001"),
    "NOT": ("select " + "not " * 3000 + "true", "E ERROR 54001"),
    "signs": ("select " + "- " * 3000 + "1", "E ERROR 54001"),
    "CASE": ("select " + "case when true then " * 1000 + "1" + " end" * 1000, "E ERROR 54001"),
    "casts": ("select 1" + "::int" * 3000, "E ERROR 54001"),
    "columns": ("select " + ", ".join(["1"] * 1500), "C SELECT 1"),
    "queries of UNION": (" union all ".join(["select 1"] * 5000), "E ERROR 54001"),
    "queries of WITH": ("with " + ", ".join(f"w{n} as (select 1)" for n in range(2000)) + " select 1", "C SELECT 1"),
    "statements": (";".join(["select 1"] * 1000), "C SELECT 1"),
    "nothing": (";" * 100_000, "I"),
    "comments": ("/*" * 100_000 + "*/" * 100_000, "I"),
    "a long constant": ("select length('" + "''" * 2_000_000 + "')", "E ERROR 54000"),
    "digits": ("select " + "9" * 900_000, "E ERROR 22003"),
    "exponent": ("select '1e1000000000'::numeric > 1", "E ERROR 22003"),
    "brackets of JSON": ("select '" + "[" * 100_000 + "]" * 100_000 + "'::jsonb", "E ERROR 22P02"),
    "parts of LIKE": ("select repeat('a', 100000) like '" + "%a" * 3000 + "b'", "C SELECT 1"),
    "repetitions": ("select repeat('a', 100000) ~ '(a*)*(a|aa)*(a+)+b'", "C SELECT 1"),
    "a long value": ("select length(" + " || ".join(["repeat('x', 10000000)"] * 10) + ")", "E ERROR 54000"),
    "columns of queries within queries": (nested("select a + a as a from {}", 40), "E ERROR 54001"),
    "columns of WITH": (
        "with c0 as (select a from t), "
        + ", ".join(f"c{n} as (select a + a as a from c{n - 1})" for n in range(1, 40))
        + " select a from c39",
        "E ERROR 54001",
    ),
    "queries of WITH within each other": (
        "with c0 as (select a from t), "
        + ", ".join(f"c{n} as (select a from c{n - 1} union all select a from c{n - 1})" for n in range(1, 20))
        + " select a from c19",
        "E ERROR 54001",
    ),
    "stars within each other": (nested("select *, * from {}", 30), "E ERROR 54011"),
    "format": ("select length(format('" + "%s" * 9 + "', " + ", ".join(["repeat('x', 10000000)"] * 9) + "))", "E ERROR 54000"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_holds_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    sql, expected = STATEMENTS[name]
    longest: list[float] = []
    run_callback = asyncio.events.Handle._run

    def measured(self: asyncio.events.Handle) -> None:
        began_s = time.thread_time()
        try:
            run_callback(self)
        finally:
            longest.append(time.thread_time() - began_s)

    async def scene(served: ServedCluster) -> None:
        node, _ = await served.leader()
        client = await RawClient.connect(*(await served.server(node)).address, database="db")
        await client.send(query("create table t(a int)"))
        message = query(sql)
        # The collector visits the objects of all other tests as well, in any thread.
        gc.collect()
        gc.freeze()
        monkeypatch.setattr(asyncio.events.Handle, "_run", measured)
        try:
            answers = await client.send(message)
        finally:
            monkeypatch.setattr(asyncio.events.Handle, "_run", run_callback)
            gc.unfreeze()
        assert answers[-2:] == [expected, "Z I"]
        assert within(max(longest), CALLBACK_S), max(longest)
        assert (await client.send(query("select 1")))[-1] == "Z I"
        client.close()

    play_served(tmp_path, scene)
