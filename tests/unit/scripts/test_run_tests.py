"""The parts of `make test`."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import run_tests
from scripts.run_tests import ROOT, Part, environment, parts, run_part, try_again

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


def of_python(program: str) -> Part:
    return Part("tried", command=(sys.executable, "-c", program))


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_tests, "RESULTS", tmp_path)
    return tmp_path


def test_processor_time_counts_a_part_and_its_children() -> None:
    spend = "import time\nwhile time.process_time() < 0.2: pass"
    outcome = run_part(of_python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spend!r}], check=True)"))
    assert outcome.passed == 1
    assert 0.2 <= outcome.processor_s < 60


def test_a_part_that_fails_is_counted_as_failed() -> None:
    assert run_part(of_python("raise SystemExit(3)")).failed == 1


FLAKY = """
import pathlib, pytest
mark = pathlib.Path(__file__).with_name("ran")
@pytest.mark.parametrize("number", range({count}))
def test_first_time_red(number):
    ran = mark.exists() and str(number) in mark.read_text()
    with mark.open("a") as file:
        file.write(str(number))
    assert ran
def test_green():
    pass
"""


@pytest.mark.parametrize(
    ("has_processes", "count", "green"),
    [(True, 1, True), (True, 2, True), (True, 3, False), (False, 1, False)],
)
def test_a_red_test_of_real_processes_is_tried_once_more_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_processes: bool, count: int, green: bool
) -> None:
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_flaky.py").write_text(FLAKY.format(count=count))
    outcome = run_part(Part("flaky", folders=("tests",), has_processes=has_processes))
    assert (outcome.passed, outcome.failed) == (1, count)
    names = [f"tests/test_flaky.py::test_first_time_red[{number}]" for number in range(count)]
    assert outcome.red == names
    assert try_again([outcome, run_part(of_python("pass"))]) == (names if green else [])
    assert (outcome.passed, outcome.failed) == ((1 + count, 0) if green else (1, count))
    assert ("<failure" in (tmp_path / "flaky.xml").read_text()) is not green


def test_a_test_that_is_red_twice_stays_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_red.py").write_text("def test_red():\n    assert False\n")
    outcome = run_part(Part("flaky", folders=("tests",), has_processes=True))
    assert try_again([outcome]) == []
    assert outcome.failed == 1


def test_nothing_is_tried_again_beside_a_part_that_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_flaky.py").write_text(FLAKY.format(count=1))
    outcome = run_part(Part("flaky", folders=("tests",), has_processes=True))
    assert try_again([outcome, run_part(of_python("raise SystemExit(3)"))]) == []


def test_a_part_that_runs_into_its_limit_names_the_test_that_was_running() -> None:
    program = 'printf tests/a.py::b >"$TRIPLICATE_CURRENT_TEST"; exec sleep 600'
    outcome = run_part(Part("tried", command=("sh", "-c", program), limit_s=2.0))
    assert outcome.failed == 1
    assert outcome.note == "ended after 2 s in tests/a.py::b"


def test_parts_keep_compiled_modules_where_the_environment_forbids_it() -> None:
    found = environment({"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/home"}, Path("current"), None)
    assert found == {"HOME": "/home", "TRIPLICATE_CURRENT_TEST": "current", "EXAMPLES_SHARE": run_tests.EXAMPLES_SHARE}


def test_parts_draw_as_many_examples_as_the_environment_says() -> None:
    assert float(environment({}, Path("current"), None)["EXAMPLES_SHARE"]) < 1
    assert environment({"EXAMPLES_SHARE": "1"}, Path("current"), None)["EXAMPLES_SHARE"] == "1"


def test_temporary_files_of_a_part_are_in_memory_where_it_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    program = (
        "import os, sys, tempfile\nfound = tempfile.gettempdir()\n"
        "sys.exit(not found.startswith(sys.argv[1]) or os.stat(found).st_mode & 0o7777 != 0o1777)"
    )
    part = Part("tried", command=(sys.executable, "-c", program, str(memory)), in_memory=True)
    monkeypatch.setattr(run_tests, "MEMORY", memory)
    monkeypatch.setattr(run_tests, "MEMORY_NEEDED_BYTES", 1)
    assert run_part(part).passed == 1
    assert list(memory.iterdir()) == []
    assert run_part(replace(part, in_memory=False)).failed == 1
    monkeypatch.setattr(run_tests, "MEMORY_NEEDED_BYTES", 1 << 60)
    assert run_part(part).failed == 1
    monkeypatch.setattr(run_tests, "MEMORY", tmp_path / "none")
    assert run_part(part).failed == 1


def test_processor_time_counts_what_a_part_leaves_running() -> None:
    program = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(600)"
    left = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {program!r}], stdout=-1).stdout.read(1)"
    assert 0.3 <= run_part(of_python(left)).processor_s < 60
