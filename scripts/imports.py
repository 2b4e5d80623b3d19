"""The files of this checkout and what each imports of the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOTS = {
    "triplicate": "src/triplicate",
    "triplicate_simulator": "simulator/triplicate_simulator",
    "triplicate_demo": "demo/triplicate_demo",
}
PLAIN = ("tests", "scripts", "benchmarks")
"""Folders that are imported by their own path."""


def import_graph() -> dict[str, frozenset[str]]:
    """Path of each Python file, relative to the checkout → paths of the files that it imports.

    A name that is imported from a package leads to the package's ``__init__``.
    """
    files = {module: path for folder, base in _bases().items() for module, path in _modules(folder, base)}
    trees = {module: ast.parse((ROOT / path).read_text(encoding="utf-8")) for module, path in files.items()}
    direct = {module: frozenset(_targets(tree, module, files)) for module, tree in trees.items()}
    return {files[module]: frozenset(files[target] for target in targets) for module, targets in direct.items()}


def _bases() -> dict[str, str]:
    return {**ROOTS, **{name: name for name in PLAIN}}


def _modules(name: str, base: str) -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / base).rglob("*.py")):
        inner = path.relative_to(ROOT / base).with_suffix("").parts
        module = ".".join([name, *inner]).removesuffix(".__init__")
        yield module, path.relative_to(ROOT).as_posix()


def _targets(tree: ast.Module, module: str, files: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name and name not in files:
                name = name.rpartition(".")[0]
            if name and name != module:
                yield name
