"""Which side runs which cases, in which order, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.sql import bulk, cases, pauses
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


FULL = SqlSizes(quick=False, seconds=5.0, rounds=2, slow_rounds=2, limit_s=19 * 60.0)
QUICK = SqlSizes(quick=True, seconds=2.0, rounds=1, slow_rounds=1, limit_s=5.5 * 60.0)

Named = tuple[tuple[str, Case], ...]
WARM_UP = "warm_up"

READS: Named = (
    ("read_16", cases.reads(16)),
    ("read_1", cases.reads(1)),
    ("read_16_follower", cases.reads(16, follower=True)),
    ("read_1_follower", cases.reads(1, follower=True)),
    ("read_simple_16", cases.reads(16, "simple")),
)
WRITES: Named = (
    ("insert_1", cases.writes("insert", 1)),
    ("insert_16", cases.writes("insert", 16)),
    ("insert_64", cases.writes("insert", 64)),
    ("tpcb_16", cases.writes("tpcb", 16)),
)
LEDGER: Named = (("ledger", cases.ledger),)
BULK: Named = (("copy", bulk.copy), ("executemany", bulk.executemany))
WAITS: Named = (("scan", pauses.scan), ("lag", pauses.lag))
TABLES: Named = (("pgbench_tables", cases.pgbench_tables),)
CONNECTIONS: Named = (("idle_200", cases.idle_200), ("connections_2000", cases.connections_2000))
TAKE_OVER: Named = (("take_over", pauses.take_over),)
FIRST: Named = ((WARM_UP, cases.warm_up),)

OF_NODES: Named = (*FIRST, *CONNECTIONS[:1], *READS, *WRITES)
ORDERS: dict[str, Named] = {
    BEFORE: (*OF_NODES, *WAITS, *BULK, *CONNECTIONS[1:], *TAKE_OVER),
    NOW: (*OF_NODES, *LEDGER, *WAITS, *BULK, *TABLES, *CONNECTIONS[1:], *TAKE_OVER),
    POSTGRES: (*FIRST, *READS, *WRITES, *BULK),
    SQLITE: (),
}
"""Cases of each side. Memory comes first, and the take-over last: it leaves one node."""
SLOW_ORDERS: dict[str, Named] = {
    BEFORE: (*FIRST, *WRITES),
    NOW: (*FIRST, *WRITES, *LEDGER),
    POSTGRES: (*FIRST, *WRITES),
    SQLITE: (),
}


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


def turns(sizes: SqlSizes) -> Iterator[Planned]:
    """All turns: the sides alternate, first at this disk and then with slower syncs."""
    for number in range(1, sizes.rounds + 1):
        for side, order in ORDERS.items():
            yield Planned(side, number, is_slow=False, cases=order)
    for number in range(1, sizes.slow_rounds + 1):
        for side, order in SLOW_ORDERS.items():
            yield Planned(side, number, is_slow=True, cases=order)
