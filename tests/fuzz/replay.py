"""Replay a corpus and count the lines it reaches: ``python -m tests.fuzz.replay CORPUS ANSWER``. Started by `run`.

Coverage begins before the modules under test are imported, so that their own lines count too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "triplicate"


def main(corpus: str, answer: str) -> None:
    meter = coverage.Coverage(data_file=None, include=[f"{PACKAGE}/*"], config_file=False)
    meter.start()
    from tests.fuzz.targets import DECODERS, STORED, TARGETS

    for name, target in TARGETS.items():
        folder = Path(corpus) / name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            target.check(path.read_bytes())
    meter.stop()
    found: dict[str, tuple[int, int]] = {}
    for module in (*DECODERS, *STORED):
        _, lines, _, missing, _ = meter.analysis2(str(PACKAGE / f"{module}.py"))
        found[module] = len(lines) - len(missing), len(lines)
        if missing:
            print(f"{module}: lines never reached: {', '.join(map(str, missing))}", file=sys.stderr)
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
