"""The Python files of a checkout and the imports between them."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "triplicate": "src/triplicate",
    "triplicate_simulator": "simulator/triplicate_simulator",
    "triplicate_demo": "demo/triplicate_demo",
    "tests": "tests",
    "scripts": "scripts",
    "benchmarks": "benchmarks",
}
"""Name of each importable folder of the checkout → its path."""
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Attributes of syntax nodes that hold lists of statements, or what holds such lists."""


def python_modules(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Dotted name and path of each module below a folder that is imported as `name`; ``__init__`` has its package's name."""
    for path in sorted(folder.rglob("*.py")):
        inner = path.relative_to(folder).with_suffix("").parts
        yield ".".join([name, *inner]).removesuffix(".__init__"), path


@dataclass(frozen=True)
class Import:
    """A module that an import statement names, and the name that it takes from there; no name for ``import module``."""

    module: str
    name: str = ""


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement of a file, also within others, in the order of `ast.walk`, which visits ten times as many nodes."""
    waiting: deque[ast.AST] = deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        for name in BLOCKS:
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                waiting.extend(inner)


def imports_of(tree: ast.Module, module: str, *, is_package: bool) -> list[Import]:
    """Every import of a module, wherever it stands in the file, as absolute names."""
    found: list[Import] = []
    for node in statements(tree):
        if isinstance(node, ast.Import):
            found += [Import(alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = module.split(".") if is_package else module.split(".")[:-1]
            base = folder[: len(folder) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found += [Import(source, alias.name) for alias in node.names]
    return found


def targets(imports: Iterable[Import], known: Container[str]) -> frozenset[str]:
    """The known modules that imports lead to: the module of a name in a package, or else the package's ``__init__``."""
    found = (inner if (inner := f"{each.module}.{each.name}") in known else each.module for each in imports)
    return frozenset(module for module in found if module in known)


def import_graph(parse: Callable[[str], ast.Module] = ast.parse) -> dict[str, frozenset[str]]:
    """Path of each Python file, relative to the checkout → paths of the files that it imports.

    A name that a package's ``__init__`` imports from a module of its own leads an importer to that module as well. A caller that parses the
    files for other uses too gives its own `parse`.
    """
    files = {module: path for name, folder in PACKAGES.items() for module, path in python_modules(ROOT / folder, name)}
    packages = {module for module, path in files.items() if path.name == "__init__.py"}
    imports = {
        module: imports_of(parse(path.read_text(encoding="utf-8")), module, is_package=module in packages) for module, path in files.items()
    }
    origins = {Import(package, each.name): each.module for package in packages for each in imports[package] if each.module in files}
    paths = {module: path.relative_to(ROOT).as_posix() for module, path in files.items()}
    graph: dict[str, frozenset[str]] = {}
    for module, path in paths.items():
        found = targets(imports[module], files) | {origins[each] for each in imports[module] if each in origins}
        graph[path] = frozenset(paths[other] for other in found - {module})
    return graph


def distances(graph: Mapping[str, frozenset[str]], changed: Iterable[str]) -> dict[str, int]:
    """How many imports lead from each file to the nearest changed one; files that none lead from are left out."""
    importers: dict[str, list[str]] = defaultdict(list)
    for path, imported in graph.items():
        for other in imported:
            importers[other].append(path)
    found = dict.fromkeys(changed, 0)
    waiting = list(found)
    for path in waiting:
        for importer in importers[path]:
            if importer not in found:
                found[importer] = found[path] + 1
                waiting.append(importer)
    return found
