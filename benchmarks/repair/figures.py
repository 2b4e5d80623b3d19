"""The figures of repairs, their table, and their targets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.ledger.figures import summary

MB = 1_000_000
P99_RATIO_MOST = 2.0
"""Target: the writers' p99 during a repair of ours against before it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair of all copies of one bookie.

    Args:
        repairer: its name.
        settings: settings that differ from the defaults.
        ledgers: ledgers that had a copy on the lost bookie.
        size_bytes: payload bytes of the copies that were made.
        noticed_s: from the kill to the end of the bookie's registration.
        repaired_s: from the end of the registration until no ledger names the lost bookie.
        cpu_s: processor time of the repairing process meanwhile.
        before_ns, meanwhile_ns: latencies of the paced appends, in nanoseconds.
        incomplete: ledgers that lack copies at the end, by the bookies' lists of entries.
    """

    repairer: str
    settings: str
    ledgers: int
    size_bytes: int
    noticed_s: float
    repaired_s: float
    cpu_s: float
    before_ns: Sequence[int]
    meanwhile_ns: Sequence[int]
    incomplete: int

    @property
    def mb_per_s(self) -> float:
        return self.size_bytes / MB / self.repaired_s

    @property
    def before(self) -> dict[str, float]:
        return summary(sorted(self.before_ns))

    @property
    def meanwhile(self) -> dict[str, float]:
        return summary(sorted(self.meanwhile_ns))

    @property
    def p99_ratio(self) -> float | None:
        """The p99 of appends during the repair against before; None without appends."""
        if not self.before_ns or not self.meanwhile_ns:
            return None
        return self.meanwhile["p99_ms"] / self.before["p99_ms"]


HEADINGS = ("repairer", "seconds", "MB", "MB/s", "processor s", "ms per MB", "p99 before, ms", "p99 meanwhile, ms", "ratio", "incomplete")


def row_of(repair: Repair) -> tuple[str, ...]:
    """A row of the table."""
    ratio = repair.p99_ratio
    size_mb = repair.size_bytes / MB
    return (
        repair.repairer,
        f"{repair.repaired_s:.1f}",
        f"{size_mb:.0f}",
        f"{repair.mb_per_s:.1f}",
        f"{repair.cpu_s:.1f}",
        f"{1000 * repair.cpu_s / size_mb:.1f}" if size_mb else "-",
        f"{repair.before.get('p99_ms', 0):.2f}",
        f"{repair.meanwhile.get('p99_ms', 0):.2f}",
        "-" if ratio is None else f"{ratio:.2f}",
        str(repair.incomplete),
    )


def table_of(repairs: Sequence[Repair]) -> str:
    """The table in Markdown."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    lines += [f"| {' | '.join(row_of(repair))} |" for repair in repairs]
    return "\n".join(lines) + "\n"


def problems_of(repairs: Sequence[Repair]) -> list[str]:
    """Targets that were missed, and ledgers without all copies."""
    found = [f"{one.repairer}: {one.incomplete} ledgers lack copies" for one in repairs if one.incomplete]
    found += [
        f"{one.repairer}: p99 of appends is {one.p99_ratio:.2f} times that before, and {P99_RATIO_MOST:g} is the target"
        for one in repairs
        if one.repairer == "ours" and one.p99_ratio is not None and one.p99_ratio > P99_RATIO_MOST
    ]
    return found
