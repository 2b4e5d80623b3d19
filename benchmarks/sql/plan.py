"""Which side runs which cases, in which order, and for how long."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from benchmarks.sql import bulk, cases, levels, pauses, restarts
from benchmarks.sql.cases import Case
from benchmarks.sql.targets import BEFORE, NOW, POSTGRES, SLOW, SQLITE


@dataclass(frozen=True, slots=True)
class SqlSizes:
    """Sizes of a whole run.

    Args:
        seconds: of each load.
        slow_rounds: rounds with slower syncs.
        limit_s: turns that have not begun by then are left out.
    """

    quick: bool
    seconds: float
    rounds: int
    slow_rounds: int
    limit_s: float


FULL = SqlSizes(quick=False, seconds=5.0, rounds=2, slow_rounds=2, limit_s=29 * 60.0)
QUICK = SqlSizes(quick=True, seconds=2.0, rounds=1, slow_rounds=1, limit_s=9.5 * 60.0)

Named = tuple[tuple[str, Case], ...]
WARM_UP = "warm_up"

READS: Named = (
    ("read_16", cases.reads(16)),
    ("read_1", cases.reads(1, has_latencies=True)),
    ("read_16_follower", cases.reads(16, follower=True)),
    ("read_1_follower", cases.reads(1, follower=True, has_latencies=True)),
    ("read_simple_16", cases.reads(16, "simple")),
)
WRITES: Named = (
    ("insert_1", cases.writes("insert", 1)),
    ("insert_16", cases.writes("insert", 16)),
    ("insert_64", cases.writes("insert", 64)),
    ("tpcb_16", cases.writes("tpcb", 16)),
)
LEVELS: Named = tuple(
    (name, cases.reads(clients, follower=level.follower, has_latencies=True, level=level)) for name, level, clients in levels.named()
)
LEVELS_OF_POSTGRES: Named = tuple(
    (name, cases.reads(clients, follower=level.follower, has_latencies=True))
    for name, level, clients in levels.named()
    if level.is_on_postgres
)
BESIDE_POSTGRES: Named = (
    ("ten_1", cases.writes("ten", 1)),
    ("ten_16", cases.writes("ten", 16)),
    ("mixed_64", cases.writes("mixed", 64)),
    ("insert_256", cases.writes("insert", 256)),
    ("read_256", cases.reads(256, has_latencies=True)),
)
"""Cases of our present nodes and of PostgreSQL."""
LEDGER: Named = (("ledger", cases.ledger),)
BULK: Named = (
    ("copy", bulk.copy),
    ("insert_rows", bulk.insert_rows),
    ("insert_text", bulk.insert_text),
    ("executemany", bulk.executemany),
)
WAITS: Named = (("scan", pauses.scan), ("lag", pauses.lag))
LATER_WAITS: Named = (("handover", pauses.handover), ("snapshot", pauses.snapshot))
TABLES: Named = (("pgbench_tables", cases.pgbench_tables),)
MEMORY: Named = (("memory_200", cases.memory_200),)
IDLE: Named = (("idle_200", cases.idle_200),)
MANY: Named = (("connections_2000", cases.connections_2000),)
TAKE_OVER: Named = (("take_over", pauses.take_over),)
FIRST: Named = ((WARM_UP, cases.warm_up),)
RESTART: Named = (("restart", restarts.restart),)
PLAIN_WRITES: Named = tuple((name, cases.plain_sqlite(name)) for name in ("insert_1", "tpcb_16"))
PLAIN: Named = (("read_1", cases.plain_sqlite("read_1")), *PLAIN_WRITES, ("ten_1", cases.plain_sqlite("ten_1")))

OF_NODES: Named = (*FIRST, *IDLE, *READS, *WRITES)
LATER: Named = (*LEVELS, *BESIDE_POSTGRES, *MEMORY)
ORDERS: tuple[tuple[str, Named], ...] = (
    (BEFORE, (*OF_NODES, *WAITS, *BULK, *MANY, *TAKE_OVER)),
    (NOW, (*OF_NODES, *LEDGER, *LATER, *WAITS, *BULK, *LATER_WAITS, *TABLES, *MANY, *TAKE_OVER)),
    (NOW, RESTART),
    (POSTGRES, (*FIRST, *READS, *WRITES, *LEVELS_OF_POSTGRES, *BESIDE_POSTGRES, *BULK)),
    (SQLITE, PLAIN),
)
"""Cases of each turn. Memory of idle connections comes first, and the take-over last: it leaves one node. Restarts have a turn with a log
of their own."""
SLOW_ORDERS: tuple[tuple[str, Named], ...] = (
    (BEFORE, (*FIRST, *WRITES)),
    (NOW, (*FIRST, *WRITES, *LEDGER)),
    (POSTGRES, (*FIRST, *WRITES)),
    (SQLITE, PLAIN_WRITES),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A turn of a side with a fresh server."""

    side: str
    round: int
    is_slow: bool
    cases: Named

    @property
    def end(self) -> str:
        """End of the cases' names."""
        return SLOW if self.is_slow else ""

    def only(self, names: Collection[str]) -> Planned | None:
        """The same turn with the named cases, and the warm-up before them; with all of them without names. None if nothing is left."""
        if not names:
            return self
        chosen = tuple((name, case) for name, case in self.cases if name in names or name == WARM_UP)
        return dataclasses.replace(self, cases=chosen) if any(name != WARM_UP for name, _ in chosen) else None


def case_names() -> frozenset[str]:
    """Names of all cases, without `SLOW` and the warm-up."""
    return frozenset(name for _, order in ORDERS for name, _ in order) - {WARM_UP}


def turns(sizes: SqlSizes) -> Iterator[Planned]:
    """All turns: the sides alternate, first at this disk and then with slower syncs."""
    for number in range(1, sizes.rounds + 1):
        for side, order in ORDERS:
            yield Planned(side, number, is_slow=False, cases=order)
    for number in range(1, sizes.slow_rounds + 1):
        for side, order in SLOW_ORDERS:
            yield Planned(side, number, is_slow=True, cases=order)
