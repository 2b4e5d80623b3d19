"""Every trace that tells of trouble has a level, and the tables of levels name no trace that is gone."""

from __future__ import annotations

import ast
import re
from collections.abc import Set
from functools import cache

from tests.house.source import python_files, read
from triplicate.cli.process import trace_levels

TABLES = {"ERRORS": trace_levels.ERRORS, "WARNINGS": trace_levels.WARNINGS, "INFOS": trace_levels.INFOS, "WELL": set(trace_levels.WELL)}
CLASSIFIED = frozenset().union(*TABLES.values())
TROUBLE = re.compile(
    r"(fail|lost|_lose|diverg|damage|corrupt|expire|mismatch|missing|unreadable|unreachable|unknown|refused|dropped|fenced|broken|orphan|"
    r"torn|retry|give_up|gave_up|full|without|put_off|away|condemned|set_aside|too_long|too_large|timed_out|timeout|error|_not_|resign)"
)


def trace_names(tree: ast.AST) -> set[str]:
    """Names of the traces that a module records; where a part is computed, ``*`` stands for it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if called in ("trace", "_trace"):
            found |= constants(node.args[0])
    return found


def constants(argument: ast.expr) -> set[str]:
    if isinstance(argument, ast.IfExp):
        return constants(argument.body) | constants(argument.orelse)
    if isinstance(argument, ast.JoinedStr):
        return {"".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in argument.values)}
    return {argument.value} if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else set()


@cache
def used() -> frozenset[str]:
    modules = [path for path in python_files() if path.startswith("src/") and "/sim/" not in path]
    return frozenset().union(*(trace_names(read(path).tree) for path in modules))


def is_used(name: str, names: Set[str]) -> bool:
    return any(re.fullmatch(re.escape(each).replace(r"\*", ".+"), name) for each in names)


def test_a_name_has_one_level() -> None:
    assert sum(len(table) for table in TABLES.values()) == len(CLASSIFIED)


def test_every_trace_in_a_table_is_recorded_somewhere() -> None:
    names = used()
    assert len(names) > 80, "the traces are found"
    assert sorted(name for name in CLASSIFIED if not is_used(name, names)) == []


def test_every_trace_whose_name_tells_of_trouble_has_a_level() -> None:
    troubles = {name for name in used() if TROUBLE.search(name) and "*" not in name}
    assert sorted(troubles - CLASSIFIED) == [], "add it to a table in src/triplicate/cli/process/trace_levels.py"


def test_names_are_found_in_every_form_that_the_code_uses() -> None:
    text = 'host.trace("a.lost")\nself._trace("a.b" if x else "a.c", y=1)\ntrace(f"a.{what}_damaged")\ntrace(kind)\nother("a.d")\n'
    assert trace_names(ast.parse(text)) == {"a.lost", "a.b", "a.c", "a.*_damaged"}
    assert is_used("a.footer_damaged", {"a.*_damaged"})
