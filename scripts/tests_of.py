"""Print the test files of a module: those that have its name, then those that import it, and else the nearest that reach it.

Usage: python -m scripts.tests_of MODULE   (``journal_files``, ``bookie.journal.journal_files``, or the path of a file)

Folders of ``tests/unit`` mirror the packages: ``tests/unit/bookie/journal/test_journal_files.py`` has the name of the module
``src/triplicate/bookie/journal/journal_files.py``, and so has a file with a further part in its name. ``tests/property`` is flat.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from scripts.imports import PACKAGES, distances, import_graph

UNIT = "tests/unit/"
PROPERTY = "tests/property/"
KINDS = (UNIT, PROPERTY, "tests/golden/", "tests/process/", "tests/simulation/", "tests/mutants/")
"""Folders of tests in the order of the answer; others follow."""

FOLDERS = {
    "simulator": PACKAGES["triplicate_simulator"],
    "demo": PACKAGES["triplicate_demo"],
    "scripts": "scripts",
    "benchmarks": "benchmarks",
    "mutants": "tests/mutants",
}
"""First folder below ``tests/unit`` → the package whose tests it holds; any other is a room of the library."""


def is_test(path: str) -> bool:
    """Whether a file is a test module or a mutant."""
    return path.startswith("tests/") and (PurePosixPath(path).name.startswith("test_") or path.startswith("tests/mutants/"))


def subjects(files: Iterable[str]) -> dict[str, str]:
    """Test file → the module whose name it has, the longest one where several fit; files that have none's are left out.

    A test file that has the name of a package belongs to the package's ``__init__.py``.

    Args:
        files: paths of all Python files of the checkout.
    """
    known: dict[tuple[str, str], str] = {}
    for path in sorted(files):
        home = _home(path)
        known[str(home.parent), home.name] = path
        if path.startswith("src/"):
            known[PROPERTY, home.name] = path
        known.setdefault((str(home), home.name), path)
    found = {path: _subject(path, known) for path in files if path.startswith((UNIT, PROPERTY)) and is_test(path)}
    return {test: module for test, module in found.items() if module}


def _subject(test: str, known: Mapping[tuple[str, str], str]) -> str | None:
    parts = PurePosixPath(test).stem.split("_")[1:]
    names = ("_".join(parts[:length]) for length in range(len(parts), 0, -1))
    folder = _folder_tested(test)
    return next((known[folder, name] for name in names if (folder, name) in known), None)


def _folder_tested(test: str) -> str:
    if test.startswith(PROPERTY):
        return PROPERTY
    library = PACKAGES["triplicate"]
    inner = PurePosixPath(test).parent.relative_to(UNIT).parts
    return "/".join([FOLDERS.get(inner[0], f"{library}/{inner[0]}"), *inner[1:]]) if inner else library


def _home(path: str) -> PurePosixPath:
    """A module's path without its suffix, or a package's folder."""
    plain = PurePosixPath(path)
    return plain.parent if plain.name == "__init__.py" else plain.with_suffix("")


def modules_named(name: str, files: Iterable[str]) -> list[str]:
    """Paths of the modules that a name, a dotted name or its end, or a path leads to."""
    dotted = name.removesuffix(".py").replace("/", ".")
    return [path for path in files if not path.startswith("tests/") and f".{'.'.join(_home(path).parts)}".endswith(f".{dotted}")]


def holding_tests(module: str, graph: Mapping[str, frozenset[str]]) -> tuple[list[str], list[str]]:
    """Test files and mutants of a module: those that have its name, and the others that import it."""
    tests = sorted((path for path in graph if is_test(path)), key=_order)
    subject = subjects(graph)
    named = [path for path in tests if subject.get(path) == module]
    return named, [path for path in tests if module in graph[path] and path not in named]


def nearest_tests(module: str, graph: Mapping[str, frozenset[str]]) -> list[str]:
    """The unit and property tests from which the fewest imports lead to a module."""
    reached = {path: far for path, far in distances(graph, [module]).items() if is_test(path) and path.startswith((UNIT, PROPERTY))}
    return sorted((path for path, far in reached.items() if far == min(reached.values())), key=_order)


def _order(path: str) -> tuple[int, str]:
    return next((place for place, folder in enumerate(KINDS) if path.startswith(folder)), len(KINDS)), path


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 2
    graph = import_graph()
    modules = modules_named(arguments[0], graph)
    if not modules:
        print(f"no module has the name {arguments[0]}", file=sys.stderr)
        return 2
    for module in modules:
        named, importing = holding_tests(module, graph)
        print(module)
        for path in named:
            print(f"  by name    {path}")
        for path in importing:
            print(f"  by import  {path}")
        if not any(path.startswith((UNIT, PROPERTY)) for path in (*named, *importing)):
            for path in nearest_tests(module, graph):
                print(f"  nearest    {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
