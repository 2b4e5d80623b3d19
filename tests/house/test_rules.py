"""Every file keeps the rules of the house; every named exception is still needed."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from tests.house import allowed, rules
from tests.house.source import PACKAGE, ROOMS, ROOT, committed_files, exported_names, python_files, read


@pytest.mark.parametrize("name", rules.RULES)
def test_the_code_keeps_the_rule(name: str) -> None:
    findings = [f"{path}: {finding}" for path in python_files() for finding in rules.RULES[name](read(path))]
    assert not findings, "\n".join([rules.RULES[name].__doc__ or name, *findings])


def test_committed_text_names_no_place() -> None:
    findings = []
    for path in committed_files():
        data = (ROOT / path).read_bytes()
        if b"\0" not in data:
            findings += [f"{path}: {finding}" for finding in rules.text_names_no_place(data.decode("utf-8"))]
    assert not findings, "\n".join(findings)


def test_long_files_on_the_list_are_still_long() -> None:
    lengths = {path: read(path).text.count("\n") if path in python_files() else 0 for path in allowed.LONG_FILES}
    assert lengths == allowed.LONG_FILES, "lower the figure, or take the file off the list in tests/house/allowed.py"


def test_long_functions_on_the_list_are_still_long() -> None:
    lengths = {
        f"{path}::{name}": rules.function_lines(node)
        for path in sorted({entry.partition("::")[0] for entry in allowed.LONG_FUNCTIONS})
        for name, node in rules.functions_of(read(path))
    }
    found = {entry: lengths.get(entry, 0) for entry in allowed.LONG_FUNCTIONS}
    assert found == allowed.LONG_FUNCTIONS, "lower the figure, or take the function off the list in tests/house/allowed.py"


@pytest.mark.parametrize(
    ("listed", "rule"),
    [
        ("OUTSIDE_PORTS", rules.the_outside_is_behind_ports),
        ("RESOLVES_FUTURES", rules.futures_are_resolved_in_one_way),
        ("SWALLOWED", rules.errors_are_not_swallowed),
    ],
)
def test_files_excused_from_a_rule_still_need_it(listed: str, rule: rules.Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    excused: dict[str, str] = dict(getattr(allowed, listed))
    monkeypatch.setattr(rules, listed, {})
    for path, reason in excused.items():
        assert reason.endswith("."), f"{path}: say why in a sentence"
        assert list(rule(read(path))), f"{path} keeps the rule now: take it off {listed} in tests/house/allowed.py"


@pytest.mark.parametrize("room", [room for room in ROOMS if room])
def test_what_a_room_exports_is_there(room: str) -> None:
    if room in ("spark", "sim") or not exported_names(room):
        return  # Spark's classes are imported where Spark is; the simulator is started by its own tests.
    module = importlib.import_module(f"{PACKAGE}.{room}")
    missing = [name for name in sorted(exported_names(room)) if not hasattr(module, name)]
    assert not missing, f"{PACKAGE}.{room} exports names that it does not have"


def test_importing_the_package_pulls_in_no_optional_dependency() -> None:
    optional = (
        "pyspark",
        "pyarrow",
        "pandas",
        "numpy",
        "psycopg",
        "kazoo",
        "rocksdict",
        "matplotlib",
        "asyncpg",
        "cryptography",
        "scramp",
        "puresasl",
    )
    rooms = ", ".join(f"{PACKAGE}.{room}" for room in ROOMS if room not in ("", "spark") and exported_names(room))
    program = f"import sys, {PACKAGE}, {rooms}; print(*sorted(set(sys.modules) & {set(optional)!r}))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "", "import it inside the function that needs it"
