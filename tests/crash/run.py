"""The long form of the crash tests: all trials within the bound, on several processes, with a table of counts.

Usage: python -m tests.crash.run [--jobs N] [--seeds N]
Exit code 1: a loss was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context

from tests.crash.counts import Counts
from tests.crash.failures import try_failed_syncs, try_full_disks
from tests.crash.flips import try_flips
from tests.crash.points import Effort, try_points

SLICES = 16
"""Number of parts of each kind of trial; any process may run any part."""
ORDERS, TEARS = 24, 24
Part = tuple[Callable[..., Counts], tuple[object, ...]]


def parts_of(seeds: int) -> list[Part]:
    """All trials, in parts of some seconds."""
    parts: list[Part] = []
    for piece in range(SLICES):
        for directories in (1, 2):
            for seed in range(1, seeds + 1):
                effort = Effort(ORDERS, TEARS, step=SLICES, first=piece)
                parts.append((try_points, (directories, seed, effort)))
            parts.append((try_full_disks, (directories, 1, SLICES, piece)))
            parts.append((try_failed_syncs, (directories, 1, SLICES, piece)))
        parts.append((try_flips, (SLICES, piece)))
    return parts


def do_part(part: Part) -> Counts:
    function, arguments = part
    return function(*arguments)


def show(counts: Counts, seconds: float) -> None:
    print(f"\n{'tried':<34}{'count':>10}")
    for kind, count in sorted(counts.tried.items()):
        print(f"{kind:<34}{count:>10}")
    print(f"{'losses':<34}{counts.losses:>10}")
    print(f"\n{'bit flips in':<20}{'outcome':<44}{'count':>8}")
    for kind, count in sorted(counts.outcomes.items()):
        where, _, outcome = kind.partition(": ")
        print(f"{where:<20}{outcome:<44}{count:>8}")
    bound = f"{ORDERS} orders and {TEARS} tears of one moment"
    print(f"\n{counts.left_out} cuts were beyond the bound of {bound}, and left out; {seconds:.0f} s")
    for line in counts.shown:
        print(f"LOST {line}")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--seeds", type=int, default=3, help="how many plays, which differ in what happens beside each other")
    chosen = options.parse_args()
    started, counts = time.monotonic(), Counts()
    parts = parts_of(chosen.seeds)
    with get_context("spawn").Pool(chosen.jobs) as pool:
        number = 0
        try:
            for number, part in enumerate(pool.imap_unordered(do_part, parts), 1):
                counts.add(part)
                if sys.stderr.isatty():
                    print(f"\r{number} of {len(parts)}, {counts.losses} losses ", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.terminate()
            print(f"\ninterrupted after {number} of {len(parts)} parts, which is no result; until then:")
    show(counts, time.monotonic() - started)
    return 1 if counts.losses or number < len(parts) else 0


if __name__ == "__main__":
    sys.exit(main())
