"""Documents name paths, modules, make targets and commands that exist."""

from __future__ import annotations

import importlib
import re
from functools import cache

import pytest

from tests.house.document_names import asking_commands, missing_commands, missing_modules, missing_paths, missing_targets
from tests.house.source import DOCUMENTS, LIVING_DOCUMENTS, ROOT
from triplicate.cli.main import cli

SESSION_SETTINGS = (
    "triplicate.as_of",
    "triplicate.request_id",
    "triplicate.read_level",
    "triplicate.max_staleness",
    "triplicate.read_position",
)
"""Settings of a session in PostgreSQL's sense, whose names look like modules."""


@cache
def targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@cache
def module_exists(name: str) -> bool:
    """Whether a dotted name leads to a module, or to a name in one."""
    file = name.replace(".", "/")
    if name in SESSION_SETTINGS or any((ROOT / folder / f"{file}.py").is_file() for folder in ("", "src", "simulator", "demo")):
        return True
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def path_exists(path: str) -> bool:
    return (ROOT / path).exists()


@pytest.mark.parametrize("path", DOCUMENTS)
def test_paths_in_code_exist(path: str) -> None:
    assert missing_paths((ROOT / path).read_text(encoding="utf-8"), path_exists) == []


@pytest.mark.parametrize("path", LIVING_DOCUMENTS)
def test_names_in_code_exist(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert missing_modules(text, module_exists) == []
    assert missing_targets(text, targets()) == []
    assert missing_commands(text, cli) == []
    assert asking_commands(text, cli) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("see `src/triplicate/gone.py`", ["src/triplicate/gone.py"]),
        ("    python scripts/gone.py --check", ["scripts/gone.py"]),
        ("```sh\ncat simulator/gone/a.py\n```", ["simulator/gone/a.py"]),
        ("see `README.md` and src/gone in prose", []),
        ("`tests/house/test_document_names.py::test_names_in_code_exist`", []),
    ],
)
def test_a_missing_path_is_reported(text: str, missing: list[str]) -> None:
    assert missing_paths(text, path_exists) == missing


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`triplicate.gone`", ["triplicate.gone"]),
        ("`triplicate.client.Gone`", ["triplicate.client.Gone"]),
        ("    python -m benchmarks.gone", ["benchmarks.gone"]),
        ("`triplicate.client.Client.open`, `python -m benchmarks.append`", []),
    ],
)
def test_a_missing_module_is_reported(text: str, missing: list[str]) -> None:
    assert missing_modules(text, module_exists) == missing


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`make gone`", ["gone"]),
        ("    N=3 make test gone", ["gone"]),
        ("`make quick`; make sure of it in prose, and of `a message: make it writable`", []),
    ],
)
def test_a_missing_target_is_reported(text: str, missing: list[str]) -> None:
    assert missing_targets(text, targets()) == missing


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`triplicate gone`", ["triplicate gone: gone"]),
        ("    triplicate ledger gone 7", ["triplicate ledger gone 7: gone"]),
        ("`triplicate up --gone`", ["triplicate up --gone: --gone"]),
        ("```\n.venv/bin/triplicate log append events hello   # a comment\n```", []),
        ("`triplicate ledger show ID --json`, `triplicate …`, `triplicate COMMAND --help`", []),
        ("triplicate gone in prose", []),
    ],
)
def test_a_missing_command_is_reported(text: str, missing: list[str]) -> None:
    assert missing_commands(text, cli) == missing


@pytest.mark.parametrize(
    ("text", "asking"),
    [
        ("```console\n$ triplicate kv drop basket\n```", ["triplicate kv drop basket"]),
        ("    triplicate node remove node-1    # --yes", ["triplicate node remove node-1"]),
        ("    .venv/bin/triplicate database drop shop --yes", []),
        ("`triplicate kv drop basket` in prose\n\n    triplicate kv create basket", []),
    ],
)
def test_a_command_that_would_ask_is_reported(text: str, asking: list[str]) -> None:
    assert asking_commands(text, cli) == asking
