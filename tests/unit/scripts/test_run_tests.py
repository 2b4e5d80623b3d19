"""The parts of `make test`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scripts.run_tests import ROOT, Part, parts

TARGETS_OF_THEIR_OWN = ("interop", "spark_deep", "demo")
"""Folders whose tests take too long for every run."""


def files_of(part: Part) -> list[str]:
    paths = [ROOT / name for name in part.folders]
    assert all(path.exists() for path in paths), part.name
    found = [file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))]
    return [file.relative_to(ROOT).as_posix() for file in found]


def test_every_test_file_is_in_one_part_that_runs() -> None:
    counted = Counter(file for part in parts() if not part.only_by_name for file in files_of(part))
    tests = ROOT / "tests"
    every = {file.relative_to(ROOT).as_posix() for file in tests.rglob("test_*.py")}
    every -= {file for file in every if Path(file).parts[1] in TARGETS_OF_THEIR_OWN}
    assert {file for file, count in counted.items() if count > 1} == set()
    assert set(counted) == every
