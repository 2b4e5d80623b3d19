"""Print the ten slowest tests of each part of the last `make test`, from the reports in ``build/test/``.

The first column is the time from start to end, with fixtures. The second is processor time, child processes that have ended included. Where
the second is much smaller, the test waits.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "build" / "test"
SHOWN = 10


def seconds(case: ElementTree.Element) -> float:
    return float(case.get("time", "0"))


def processor_s(case: ElementTree.Element) -> float:
    """As `tests/conftest.py` has noted it."""
    return sum(float(noted.get("value", "0")) for noted in case.iter("property") if noted.get("name") == "processor_s")


def main() -> int:
    reports = sorted(RESULTS.glob("*.xml"))
    if not reports:
        print("no results yet: run `make test` first", file=sys.stderr)
        return 1
    for report in reports:
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
        print(f"{report.stem}: {len(cases)} tests, {sum(map(seconds, cases)):.1f} s, {sum(map(processor_s, cases)):.1f} s of a processor")
        for case in sorted(cases, key=seconds, reverse=True)[:SHOWN]:
            print(f"  {seconds(case):8.2f} s {processor_s(case):8.2f} s  {case.get('classname')}::{case.get('name')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
