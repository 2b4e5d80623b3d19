"""The inputs of the rules: source files, each read and parsed once, documents, and the table of rooms."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from scripts.floor_plan import Plan, read_plan

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "triplicate"

ROOMS: dict[str, tuple[str, ...]] = {
    "errors": (),
    "config": ("errors",),
    "ledger": ("errors",),
    "wire": ("ledger",),
    "runtime": ("errors", "config"),
    "security": ("runtime",),
    "metadata": ("ledger", "security"),
    "client": ("wire", "metadata"),
    "bookie": ("wire", "metadata"),
    "autorecovery": ("client",),
    "log": ("client",),
    "replica": ("log",),
    "sql": ("replica",),
    "kv": ("replica",),
    "embedded": ("sql", "kv", "bookie"),
    "blocking": ("client", "log", "sql", "embedded"),
    "dbapi": ("blocking",),
    "testing": ("dbapi", "kv"),
    "spark": ("blocking", "sql", "autorecovery"),
    "sim": ("runtime",),
    "console": ("spark", "bookie"),
    "cli": ("console", "kv"),
    "__main__": ("cli",),
    "": ("testing",),
}
"""Each room and the rooms directly beneath it, whose own imports it may use as well. The empty name is ``triplicate/__init__.py``."""

WINGS: dict[str, tuple[str, ...]] = {
    "wire": ("v3",),
    "ledger": ("placement",),
    "security": ("core",),
    "metadata": ("core", "drivers"),
    "client": ("connection", "read", "write"),
    "autorecovery": ("core",),
    "bookie": ("core", "journal", "storage", "server", "offline"),
    "log": ("core", "store", "reading", "upkeep", "writing", "publishing"),
    "replica": ("core",),
    "sql": ("core", "storage", "catalogue", "pg", "executor", "engine", "backup", "hosting"),
    "sql.backup": ("core",),
    "embedded": ("core",),
    "sql.pg": ("syntax", "values", "analysis", "translate", "ddl", "rewrite", "protocol"),
    "kv": ("core", "storage", "engine", "hosting", "resp"),
    "kv.resp": ("core",),
    "spark": ("core", "cluster", "logs", "change_feed", "tables"),
    "cli": ("process", "supervision", "terminal", "overview", "data_commands", "server_commands"),
    "cli.overview": ("core",),
}
"""The wings of each room from the ground up: a wing may import those before it."""

SEPARATE: dict[str, tuple[str, ...]] = {
    "simulator/triplicate_simulator": ("checkers", "cluster", "faults", "workloads", "runner"),
    "demo/triplicate_demo": (),
}
"""Packages that are shipped beside ours, with their wings from the ground up. They import any room; no room imports them."""

PURE_ROOMS = ("ledger", "wire")
OPEN_ROOMS = ("errors", "config")
"""Rooms whose modules are public one by one: nothing in them is internal."""


def may_import(room: str) -> frozenset[str]:
    """Every room beneath this one."""
    beneath: set[str] = set()
    waiting = list(ROOMS.get(room, ()))
    while waiting:
        name = waiting.pop()
        if name not in beneath:
            beneath.add(name)
            waiting += ROOMS[name]
    return frozenset(beneath)


@cache
def tree_of(text: str) -> ast.Module:
    """The syntax tree of a text, parsed once however many checks use it."""
    return ast.parse(text)


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """All nodes of the text's tree, in the order of `ast.walk`."""
    return tuple(ast.walk(tree_of(text)))


@cache
def plan_of(folder: Path) -> Plan:
    return read_plan(folder, tree_of)


@dataclass(frozen=True)
class Import:
    """One import of a module of ours or of others.

    `module` is absolute; `names` is empty for ``import module``.
    """

    line: int
    module: str
    names: tuple[str, ...]
    for_types_only: bool


@dataclass
class Source:
    """One Python file: `path` is relative to the repository, with '/'."""

    path: str
    text: str
    exports: dict[str, frozenset[str]] | None = field(default=None, repr=False)
    """Names in each room's `__all__`; read from the repository when None."""

    @property
    def tree(self) -> ast.Module:
        return tree_of(self.text)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        return nodes_of(self.text)

    @property
    def parts(self) -> tuple[str, ...]:
        """Path below ``src/triplicate`` without suffix, empty for files elsewhere."""
        prefix = f"src/{PACKAGE}/"
        return tuple(self.path.removeprefix(prefix).removesuffix(".py").split("/")) if self.path.startswith(prefix) else ()

    @property
    def room(self) -> str | None:
        """Name of the room; the empty name for the package's own ``__init__``; None for files outside the package."""
        if not self.parts:
            return None
        return "" if self.parts == ("__init__",) else self.parts[0]

    @property
    def is_pure(self) -> bool:
        return bool(self.parts) and (self.parts[0] in PURE_ROOMS or "core" in self.parts[1:])

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import, also inside functions."""
        return tuple(self._imports())

    def _imports(self) -> Iterator[Import]:
        for_types = {
            id(child)
            for node in self.nodes
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for statement in node.body
            for child in ast.walk(statement)
        }
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(node.lineno, alias.name, (), id(node) in for_types)
            elif isinstance(node, ast.ImportFrom):
                names = tuple(alias.name for alias in node.names)
                yield Import(node.lineno, self._absolute(node), names, id(node) in for_types)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = [PACKAGE, *self.parts][: -node.level]
        return ".".join([*package, *([node.module] if node.module else [])])

    def exported(self, room: str) -> frozenset[str]:
        return self.exports[room] if self.exports is not None else exported_names(room)


@cache
def exported_names(room: str) -> frozenset[str]:
    """The strings in `__all__` of a room's ``__init__`` (or of the module, where the room is one file)."""
    folder = ROOT / "src" / PACKAGE / room / "__init__.py"
    file = folder if folder.exists() else ROOT / "src" / PACKAGE / f"{room}.py"
    if not file.exists():
        return frozenset()
    for node in read(file.relative_to(ROOT).as_posix()).tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets) and node.value is not None:  # type: ignore[attr-defined]
            return frozenset(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return frozenset()


@cache
def python_files() -> tuple[str, ...]:
    """Every Python file of ours except generated ones, relative and sorted."""
    folders = ("src", "simulator", "demo", "tests", "scripts", "benchmarks")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    relative = (path.relative_to(ROOT).as_posix() for path in files)
    return tuple(sorted(path for path in relative if not path.endswith("_pb2.py") and "egg-info" not in path))


@cache
def read(path: str) -> Source:
    return Source(path, (ROOT / path).read_text(encoding="utf-8"))


@cache
def committed_files() -> tuple[str, ...]:
    """Files tracked by git, or in a copy without git every file outside build folders."""
    answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        return tuple(sorted(name for name in answer.stdout.split("\0") if name and (ROOT / name).is_file()))
    hidden = re.compile(r"(^|/)(\.[a-z_]+|build|dist|__pycache__|[^/]*\.egg-info)(/|$)")
    relative = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
    return tuple(sorted(path for path in relative if not hidden.search(path)))


DOCUMENTS = tuple(path for path in committed_files() if path.endswith(".md"))
RECORDS = ("CHANGELOG.md", "docs/decisions/", "docs/measured-runs.md")
"""Pages that are not rewritten: their names are those of their time."""
LIVING_DOCUMENTS = tuple(path for path in DOCUMENTS if not path.startswith(RECORDS))
