"""Count the floor plan of a checkout: rooms, wings, arrows, circles, attributes, long files, repeated names.

Usage: python -m scripts.floor_plan [FOLDER]   (FOLDER: the package's folder; ``src/triplicate`` of this checkout when it is not named)

A room is a sub-package or a module of the package; a wing is a sub-package of a room. A module that lies in a room beside its wings counts
as a node of its own. An arrow leads from a node to another one that it imports, however many modules do; imports for types count. Arrows
run down: one that runs up closes a circle, and a circle counts its nodes.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scripts.imports import imports_of, python_modules, targets

LONG_LINES = 450
MANY_ATTRIBUTES = 20
RECORDS = ("Settings", "Metrics")
"""Endings of the names of classes that list settings or metrics: they may have any number of attributes."""
PACKAGE = Path(__file__).resolve().parent.parent / "src" / "triplicate"

Graph = Mapping[str, frozenset[str]]


@dataclass
class Plan:
    """The parts of a package; modules are named by their dotted path below it.

    Args:
        imports: module → modules that it imports.
        attributes: ``module.Class`` → number of attributes of its instances.
        lines: module → lines.
        classes: class name → modules that define it.
    """

    imports: dict[str, frozenset[str]] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def rooms(self) -> Graph:
        return grouped(self.imports, lambda module: module.split(".")[0])

    def wings(self, room: str) -> Graph:
        """The nodes of a room, or of a wing of one (``sql.pg``): its wings, and the modules beside them."""
        inside = {
            module: frozenset(other for other in imported if other.startswith(f"{room}."))
            for module, imported in self.imports.items()
            if module.startswith(f"{room}.") and not module.endswith(".__init__")
        }
        return grouped(inside, lambda module: module.removeprefix(f"{room}.").split(".")[0])


def grouped(imports: Mapping[str, Iterable[str]], node_of: object) -> Graph:
    """The graph of the nodes that `node_of` finds for modules, without arrows from a node to itself."""
    assert callable(node_of)
    arrows: dict[str, set[str]] = defaultdict(set)
    for module, imported in imports.items():
        arrows[node_of(module)] |= {node_of(other) for other in imported}
    return {node: frozenset(others - {node}) for node, others in arrows.items()}


def read_plan(package: Path, parse: Callable[[str], ast.Module] = ast.parse) -> Plan:
    """Read every module of a package except generated ones. A caller that parses the files for other uses too gives its own `parse`."""
    plan = Plan()
    files = {module: path for module, path in python_modules(package, package.name) if not path.name.endswith("_pb2.py")}
    below = {module: ".".join(path.relative_to(package).with_suffix("").parts) for module, path in files.items()}
    for full, path in files.items():
        text = path.read_text(encoding="utf-8")
        tree = parse(text)
        module = below[full]
        plan.lines[module] = text.count("\n")
        imported = targets(imports_of(tree, full, is_package=path.name == "__init__.py"), files) - {full, package.name}
        plan.imports[module] = frozenset(below[other] for other in imported)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                plan.classes[node.name].append(module)
                plan.attributes[f"{module}.{node.name}"] = len(_attributes(node))
    return plan


def _attributes(node: ast.ClassDef) -> set[str]:
    """Attributes of instances: fields, slots, and names that methods assign to ``self``."""
    found: set[str] = set()
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if "ClassVar" not in ast.unparse(statement.annotation):
                found.add(statement.target.id)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for child in ast.walk(statement):
                if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store) and ast.unparse(child.value) == "self":
                    found.add(child.attr)
    return found


def crowded(plan: Plan) -> dict[str, int]:
    """Classes with more than `MANY_ATTRIBUTES` attributes, most first; classes of settings and of metrics do not count."""
    many = [(count, name) for name, count in plan.attributes.items() if count > MANY_ATTRIBUTES and not name.endswith(RECORDS)]
    return {name: count for count, name in sorted(many, reverse=True)}


def circles(graph: Graph) -> list[list[str]]:
    """Sets of nodes that reach each other, each sorted."""
    reached = {node: _reached(graph, node) for node in graph}
    found: set[tuple[str, ...]] = set()
    for node, others in reached.items():
        if node in others:
            found.add(tuple(sorted(other for other in others if node in reached.get(other, ()))))
    return [list(circle) for circle in sorted(found)]


def _reached(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for node in graph.get(waiting.pop(), ()):
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    return reached


def floors(graph: Graph) -> int:
    """Nodes on the longest way down; a circle counts as often as it is entered."""
    depth: dict[str, int] = {}

    def floor(node: str, above: frozenset[str]) -> int:
        if node not in depth:
            below = [other for other in graph.get(node, ()) if other not in above]
            depth[node] = 1 + max((floor(other, above | {node}) for other in below), default=0)
        return depth[node]

    return max((floor(node, frozenset()) for node in graph), default=0)


def arrows(graph: Graph) -> int:
    return sum(map(len, graph.values()))


def main(arguments: list[str]) -> int:
    package = Path(arguments[0]) if arguments else PACKAGE
    plan = read_plan(package)
    rooms = plan.rooms()
    modules = {module: others for module, others in plan.imports.items() if not module.endswith("__init__")}
    print(f"{len(plan.lines)} modules, {sum(plan.lines.values()):,} lines, {sum(map(len, plan.classes.values()))} classes")
    print(f"rooms: {len(rooms)}, arrows {arrows(rooms)}, floors {floors(rooms)}, circles {len(circles(rooms))}")
    inner = circles(modules)
    print(f"circles of modules: {len(inner)}" + "".join(f"\n  {', '.join(circle)}" for circle in inner))
    print(f"\n{'room':<12}{'modules':>8}{'lines':>8}{'nodes':>7}{'floors':>7}{'arrows':>7}  circles of wings")
    for room in sorted(rooms):
        members = [module for module in plan.lines if module.split(".")[0] == room]
        if len(members) > 1:
            wings = plan.wings(room)
            lines = sum(plan.lines[module] for module in members)
            drawn = "; ".join(", ".join(circle) for circle in circles(wings)) or "none"
            print(f"{room:<12}{len(members):>8}{lines:>8,}{len(wings):>7}{floors(wings):>7}{arrows(wings):>7}  {drawn}")
    many = crowded(plan)
    print(f"\nclasses with more than {MANY_ATTRIBUTES} attributes, without those of settings and metrics: {len(many)}")
    for name, count in many.items():
        print(f"  {count:>3}  {name}")
    long = sorted(((lines, module) for module, lines in plan.lines.items() if lines > LONG_LINES), reverse=True)
    print(f"\nfiles over {LONG_LINES} lines: {len(long)}, the longest {long[0][0] if long else 0}")
    repeated = {name: places for name, places in plan.classes.items() if len(places) > 1}
    print(f"\nclass names that repeat: {len(repeated)}")
    for name, places in sorted(repeated.items()):
        print(f"  {name}: {', '.join(places)}")
    files: dict[str, list[str]] = defaultdict(list)
    for module in plan.lines:
        files[module.rpartition(".")[2]].append(module)
    repeated = {name: places for name, places in files.items() if len(places) > 1 and name != "__init__"}
    print(f"\nfile names that repeat: {len(repeated)}")
    for name, places in sorted(repeated.items()):
        print(f"  {name}.py: {', '.join(places)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
