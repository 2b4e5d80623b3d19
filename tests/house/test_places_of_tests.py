"""The tests of a module are found by its name, and what test modules share stands in rig modules."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import pytest

from scripts.imports import import_graph
from scripts.tests_of import FOLDERS, PROPERTY, UNIT, is_test, subjects
from tests.house.source import Source, python_files, read, tree_of


def misnamed(files: tuple[str, ...]) -> Iterator[str]:
    """Unit and property tests that have the name of no module."""
    named = subjects(files)
    for path in files:
        if path.startswith((UNIT, PROPERTY)) and is_test(path) and path not in named:
            yield (
                f"{path}: name it test_<module>.py or test_<module>_<aspect>.py, after a module or a wing; "
                "folders below tests/unit mirror the packages"
            )


def shared_tests(graph: Mapping[str, frozenset[str]]) -> set[tuple[str, str]]:
    """Files that import a test module, each with that module."""
    return {(path, other) for path, imported in graph.items() for other in imported if _is_test_module(other)}


def _is_test_module(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_")


def test_a_test_file_has_the_name_of_a_module() -> None:
    found = list(misnamed(python_files()))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "path",
    [
        "tests/unit/wire/test_scenario.py",
        "tests/unit/wire/test_bulk.py",
        "tests/unit/bookie/test_frames.py",
        "tests/unit/test_frames.py",
        "tests/unit/attic/test_frames.py",
        "tests/property/test_scenario.py",
    ],
)
def test_a_file_that_has_no_modules_name_is_reported(path: str) -> None:
    modules = ("src/triplicate/wire/frames.py", "src/triplicate/wire/v3/bulk.py", "src/triplicate/bookie/bookie.py")
    assert [finding.partition(":")[0] for finding in misnamed((*modules, path))] == [path]
    assert not list(misnamed((*modules, "tests/unit/wire/test_frames_cut.py", "tests/unit/wire/frame_rig.py")))


def test_folders_of_tests_that_are_no_rooms_are_packages() -> None:
    files = python_files()
    for name, folder in FOLDERS.items():
        assert any(path.startswith(f"{folder}/") for path in files), f"{name} leads to {folder}, which holds no module"


def own_waits(sources: Iterable[Source]) -> Iterator[str]:
    """Functions of tests that wait for any condition, outside of `tests/waiting.py`."""
    for source in sources:
        if source.path.startswith("tests/") and source.path != "tests/waiting.py":
            for node in source.nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "condition" in {one.arg for one in node.args.args}:
                    yield f"{source.path}: {node.name} takes a condition; wait with tests/waiting.py"


def test_tests_wait_for_conditions_in_one_way() -> None:
    assert not list(own_waits(map(read, python_files())))


def test_another_wait_is_reported() -> None:
    text = "async def until(condition):\n    while not condition():\n        await asyncio.sleep(0.005)\n"
    assert [finding.partition(":")[0] for finding in own_waits([Source("tests/unit/a.py", text)])] == ["tests/unit/a.py"]
    assert not list(own_waits([Source("tests/waiting.py", text), Source("tests/unit/b.py", "def until(role):\n    pass\n")]))


def test_no_module_imports_a_test_module() -> None:
    assert shared_tests(import_graph(tree_of)) == set(), "move what they share into a rig module beside them"


def test_an_import_of_a_test_module_is_reported() -> None:
    graph = {
        "tests/unit/test_a.py": frozenset({"tests/unit/rig.py"}),
        "tests/process/test_b.py": frozenset({"tests/unit/test_a.py"}),
        "tests/unit/rig.py": frozenset[str](),
    }
    assert shared_tests(graph) == {("tests/process/test_b.py", "tests/unit/test_a.py")}
