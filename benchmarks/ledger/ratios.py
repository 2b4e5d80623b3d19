"""One ratio per target from the runs: 1.0 is exactly on target, and more is better.

A figure of several rounds is their median. Of Apache's settings the better one counts, for each figure separately. A target with a missing
figure is None.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

APACHE = ("apache_shipped", "apache_advised")
OURS = "ours"
FLOOR = "floor"
WINDOW_1_ALLOWANCE_MS = 0.44
MEMORY_ALLOWANCE_MIB = 80.0
OUR_BOOKIES = (OURS, "crossed")
STALLED = "stalled"
APPEND_CASES = ("append_100", "append_1k", "append_16k")


@dataclass(frozen=True)
class Run:
    """One case, measured once on one side. `figures` is None if the measurement failed; `reason` then has the cause."""

    side: str
    case: str
    round: int
    figures: dict[str, float] | None
    reason: str = ""
    seconds: float = 0.0
    memory_mib: dict[str, float] = field(default_factory=dict)
    """Peak of the resident memory of each process during the case."""


class Runs:
    """Looks figures up. `fdatasync_p50_ms` is that of a 4 KiB append in the same run; `bounds_mib` the sum of a bookie's memory limits.

    `planned` has side, case and round of every run of the whole comparison.
    """

    def __init__(
        self,
        runs: Iterable[Run],
        fdatasync_p50_ms: float | None = None,
        bounds_mib: float | None = None,
        planned: Collection[tuple[str, str, int]] = (),
    ) -> None:
        self.runs = list(runs)
        self.fdatasync_p50_ms = fdatasync_p50_ms
        self.bounds_mib = bounds_mib
        self.planned = frozenset(planned)

    def of(self, side: str, case: str, figure: str) -> float | None:
        """The median over the rounds."""
        found = [
            run.figures[figure]
            for run in self.runs
            if (run.side, run.case) == (side, case) and run.figures is not None and figure in run.figures
        ]
        return statistics.median(found) if found else None

    def best_of_apache(self, case: str, figure: str, better: Callable[[list[float]], float]) -> float | None:
        """`better` is max for rates and min for times. Both settings must have been measured."""
        found = [self.of(side, case, figure) for side in APACHE]
        known = [value for value in found if value is not None]
        return better(known) if len(known) == len(found) else None

    def our_memory_mib(self) -> float | None:
        """Peak memory of any of our bookie processes, including those used by Apache's client and those being filled.

        None unless every planned run succeeded, since a missing run might have shown more, above all the one with the stalled disk.
        """
        runs = [run for run in self.runs if run.side in OUR_BOOKIES]
        peaks = [[mib for name, mib in run.memory_mib.items() if name.startswith("bookie")] for run in runs]
        missing = {planned for planned in self.planned if planned[0] in OUR_BOOKIES} - {(run.side, run.case, run.round) for run in runs}
        has_stalled = any((run.side, run.case) == (OURS, STALLED) for run in runs)
        if missing or not has_stalled or not all(peaks) or any(run.figures is None for run in runs):
            return None
        return max(max(found) for found in peaks)


@dataclass(frozen=True)
class Target:
    """One line of the table of targets."""

    key: str
    text: str
    unit: str
    measured: Callable[[Runs], float | None]
    """Subject of the target."""
    wanted: Callable[[Runs], float | None]
    """The wanted minimum or maximum."""
    more_is_better: bool

    def ratio(self, runs: Runs) -> float | None:
        measured, wanted = self.measured(runs), self.wanted(runs)
        return divided(measured, wanted) if self.more_is_better else divided(wanted, measured)


def divided(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below is not None and below > 0 else None


def times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _ours(case: str, figure: str) -> Callable[[Runs], float | None]:
    return lambda runs: runs.of(OURS, case, figure)


def _always(value: float) -> Callable[[Runs], float | None]:
    return lambda runs: value


def _as_often_as_apache(case: str, figure: str = "per_s") -> Callable[[Runs], float | None]:
    return lambda runs: divided(runs.of(OURS, case, figure), runs.best_of_apache(case, figure, max))


def _as_long_as_apache(case: str, figure: str) -> Callable[[Runs], float | None]:
    return lambda runs: divided(runs.of(OURS, case, figure), runs.best_of_apache(case, figure, min))


def _cpu(runs: Runs) -> float | None:
    """The worst of the payload sizes."""
    found = [_as_long_as_apache(case, "cpu_s_per_million")(runs) for case in APPEND_CASES]
    known = [value for value in found if value is not None]
    return max(known) if len(known) == len(found) else None


def _catch_up(runs: Runs) -> float | None:
    """Our default read against Apache's by ranges or by batches, the faster of the two. Its default settings have no batches."""
    by_ranges, by_batches = runs.best_of_apache("catch_up_cold", "per_s", max), runs.of("apache_advised", "batch_cold", "per_s")
    if by_ranges is None or by_batches is None:
        return None
    return divided(runs.of(OURS, "catch_up_cold", "per_s"), max(by_ranges, by_batches))


def _window_1_limit(runs: Runs) -> float | None:
    return None if runs.fdatasync_p50_ms is None else WINDOW_1_ALLOWANCE_MS + runs.fdatasync_p50_ms


def _memory_limit(runs: Runs) -> float | None:
    return None if runs.bounds_mib is None else runs.bounds_mib + MEMORY_ALLOWANCE_MIB


def _growth(figure: str) -> Callable[[Runs], float | None]:
    return lambda runs: divided(runs.of(OURS, "ledgers_many", figure), runs.of(OURS, "ledgers_few", figure))


def _against(case: str, figure: str, base: str, base_figure: str) -> Callable[[Runs], float | None]:
    return lambda runs: divided(runs.of(OURS, case, figure), runs.of(OURS, base, base_figure))


def _floor(runs: Runs) -> float | None:
    return divided(runs.of(OURS, "append_1k", "per_s"), runs.of(FLOOR, "append_1k", "per_s"))


TARGETS: tuple[Target, ...] = (
    Target("append_1k_vs_apache", "append 1 KiB, against Apache's", "x", _as_often_as_apache("append_1k"), _always(2.0), True),
    Target("append_1k_vs_floor", "append 1 KiB, against the floor", "x", _floor, _always(0.6), True),
    Target("append_100_vs_apache", "append 100 B, against Apache's", "x", _as_often_as_apache("append_100"), _always(2.0), True),
    Target("cpu_per_entry_vs_apache", "processor time per entry, worst size, against Apache's", "x", _cpu, _always(0.5), False),
    Target(
        "p99_5000_vs_apache", "append p99 at 5,000/s, against Apache's", "x", _as_long_as_apache("rate_5000", "p99_ms"), _always(0.5), False
    ),
    Target(
        "window_1_p50",
        "append p50 with window 1 (0.44 ms and a 4 KiB fdatasync)",
        "ms",
        _ours("window_1", "p50_ms"),
        _window_1_limit,
        False,
    ),
    Target("catch_up_read_vs_apache", "catch-up read from cold files, against Apache's", "x", _catch_up, _always(2.0), True),
    Target(
        "tail_p50_vs_append_p50",
        "append-to-tailer p50, against append p50",
        "x",
        _against("tail", "p50_ms", "tail", "append_p50_ms"),
        _always(2.5),
        False,
    ),
    Target("tail_p99_vs_apache", "append-to-tailer p99, against Apache's", "x", _as_long_as_apache("tail", "p99_ms"), _always(0.5), False),
    Target(
        "p99_under_readers",
        "writers' p99 under catch-up readers, against without",
        "x",
        _against("under_readers", "p99_ms", "without_readers", "p99_ms"),
        _always(1.5),
        False,
    ),
    Target(
        "many_ledgers_vs_one",
        "1,000 ledgers at once, against one",
        "x",
        _against("many_ledgers", "per_s", "one_ledger", "per_s"),
        _always(0.8),
        True,
    ),
    Target(
        "recovery_vs_apache",
        "recovery of 100,000 entries, against Apache's",
        "x",
        _as_long_as_apache("recovery", "recovery_s"),
        _always(0.5),
        False,
    ),
    Target("recovery_s", "recovery of 100,000 entries", "s", _ours("recovery", "recovery_s"), _always(1.0), False),
    Target("start_full_journal_s", "start with a full journal", "s", _ours("start_full_journal", "start_s"), _always(10.0), False),
    Target("start_many_ledgers_s", "start with 10,000 ledgers", "s", _ours("ledgers_many", "start_s"), _always(2.0), False),
    Target("p99_many_ledgers", "append p99 with 10,000 ledgers on disk, against 100", "x", _growth("p99_ms"), _always(1.2), False),
    Target("memory_many_ledgers", "memory with 10,000 ledgers on disk, against 100", "x", _growth("memory_mib"), _always(1.2), False),
    Target(
        "memory_bounds",
        "most memory of a bookie process in any case (bounds and 80 MiB)",
        "MiB",
        lambda runs: runs.our_memory_mib(),
        _memory_limit,
        False,
    ),
)


def ratios(runs: Runs) -> dict[str, float | None]:
    """One number per target."""
    return {target.key: target.ratio(runs) for target in TARGETS}
