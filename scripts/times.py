"""Print the ten slowest tests of each part of the last `make test`, from the reports in ``build/test/``."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "build" / "test"
SHOWN = 10


def main() -> int:
    reports = sorted(RESULTS.glob("*.xml"))
    if not reports:
        print("no results yet: run `make test` first", file=sys.stderr)
        return 1
    for report in reports:
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
        total = sum(float(case.get("time", "0")) for case in cases)
        print(f"{report.stem}: {len(cases)} tests, {total:.1f} s")
        slowest = sorted(cases, key=lambda case: float(case.get("time", "0")), reverse=True)[:SHOWN]
        for case in slowest:
            print(f"  {float(case.get('time', '0')):8.2f} s  {case.get('classname')}::{case.get('name')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
