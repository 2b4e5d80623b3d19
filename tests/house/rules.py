"""The rules of the house. Each takes one file and reports findings; each message names the cure.

A rule is a function from `Source` to messages. `RULES` lists them all; `test_rules.py` holds the code to them, and
`test_rules_catch.py` holds each rule to an offending snippet, because a check that was never seen to fail proves nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from tests.house.allowed import LONG_FILES, LONG_FUNCTIONS, OUTSIDE_PORTS, RESOLVES_FUTURES, SWALLOWED
from tests.house.source import OPEN_ROOMS, PACKAGE, PURE_ROOMS, ROOMS, Source, may_import

Rule = Callable[[Source], Iterator[str]]

IMPURE = frozenset(["asyncio", "socket", "ssl", "threading", "time", "random", "secrets", "uuid", "os", "logging", "sqlite3"])
OUTSIDE = frozenset(["socket", "ssl", "threading", "time", "random", "secrets", "uuid"])
PORT_ROOMS = ("client", "bookie", "autorecovery", "metadata", "log", "replica")
FILE_LINES = 600
FUNCTION_LINES = 60


def pure_rooms_touch_nothing_outside(source: Source) -> Iterator[str]:
    """Pure rooms and `core/` folders import neither time nor chance nor input and output."""
    if not source.is_pure:
        return
    for found in source.imports:
        top = found.module.split(".")[0]
        if top in IMPURE and not found.for_types_only:
            yield f"line {found.line}: pure code imports {top}; take the time, bytes or random stream as an argument"


def pure_code_stands_on_pure_code(source: Source) -> Iterator[str]:
    """Pure code imports only pure code of ours."""
    if not source.is_pure:
        return
    for line, module, _names in _ours(source):
        inner = module.split(".")[1:]
        pure = not inner or inner[0] in PURE_ROOMS + OPEN_ROOMS or "core" in inner[1:]
        if not pure:
            yield f"line {line}: pure code imports {module}, which may do input and output; move what it needs into a core/ folder"


def imports_go_down_only(source: Source) -> Iterator[str]:
    """A room imports only rooms beneath it."""
    if source.room is None:
        return
    if source.room not in ROOMS:
        yield f"room {source.room} is not in the table of tests/house/source.py; add it with the rooms it may import"
        return
    allowed = may_import(source.room)
    for line, module, _names in _ours(source):
        room = module.partition(".")[2].partition(".")[0]
        if room != source.room and room not in allowed:
            yield (
                f"line {line}: {source.room or PACKAGE} imports {room or PACKAGE}, which is not beneath it; "
                f"hand the object in from above, or move the shared part down"
            )


def rooms_meet_at_the_door(source: Source) -> Iterator[str]:
    """Across rooms only names that the other room's `__init__` exports are imported."""
    if source.room is None:
        return
    for line, module, names in _ours(source):
        inner = module.split(".")[1:]
        if not inner or inner[0] == source.room or inner[0] in OPEN_ROOMS:
            continue
        room = inner[0]
        if len(inner) > 1 or not names:
            yield f"line {line}: imports {module}; write `from {PACKAGE}.{room} import …` and export the name there"
            continue
        for name in names:
            if name not in source.exported(room):
                yield f"line {line}: {name} is internal to {room}; add it to `__all__` of {PACKAGE}.{room} or do without"


def tasks_are_made_in_runtime(source: Source) -> Iterator[str]:
    """Only `runtime` makes tasks: a task nobody holds dies unseen, and asyncio's groups cancel in set order."""
    if source.room in (None, "runtime"):
        return
    for node in source.nodes:
        name = _called(node)
        if name in ("create_task", "ensure_future", "TaskGroup"):
            yield f"line {node.lineno}: calls {name}; use `TaskScope.spawn` of {PACKAGE}.runtime"  # type: ignore[attr-defined]


def the_outside_is_behind_ports(source: Source) -> Iterator[str]:
    """Rooms that the simulator runs reach clock, network, chance and threads only through `Host`."""
    if source.room not in PORT_ROOMS or source.path in OUTSIDE_PORTS:
        return
    for found in source.imports:
        top = found.module.split(".")[0]
        if top in OUTSIDE and not found.for_types_only and not _is_harmless(source, found.module):
            yield f"line {found.line}: imports {top}; use the port of `Host` in {PACKAGE}.runtime"
    for node in source.nodes:
        name = _called(node)
        if name in ("to_thread", "run_in_executor", "open_connection", "start_server", "create_connection", "create_server"):
            yield f"line {node.lineno}: calls {name}; use the Worker or Network port of `Host`"  # type: ignore[attr-defined]


def queues_have_a_limit(source: Source) -> Iterator[str]:
    """Every queue of ours is bounded; `runtime` has the one place where that is done."""
    if source.room in (None, "runtime"):
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and _called(node) in ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"):
            sizes = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "maxsize")]
            if not sizes or (isinstance(sizes[0], ast.Constant) and not sizes[0].value):
                yield f"line {node.lineno}: a queue without a limit; give maxsize, or admit by an `AdmissionWindow`"


def futures_are_resolved_in_one_way(source: Source) -> Iterator[str]:
    """A future may be done already: cancelled, or resolved by another event. `runtime.oneshot` has the one place that looks first."""
    if source.room is None and not source.path.startswith("simulator/"):
        return
    if source.path == "src/triplicate/runtime/oneshot.py" or source.path in RESOLVES_FUTURES:
        return
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("set_result", "set_exception"):
            yield f"line {node.lineno}: {node.attr} raises if the future is done; use `resolve` or `fail` of {PACKAGE}.runtime"


def errors_are_not_swallowed(source: Source) -> Iterator[str]:
    """A broad handler raises again or uses what it caught; a cancellation is always raised again."""
    if source.room is None or source.path in SWALLOWED:
        return
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler):
            caught = _caught_names(node)
            raises = any(isinstance(child, ast.Raise) for child in ast.walk(node))
            if "CancelledError" in caught and not raises:
                yield f"line {node.lineno}: a cancellation ends here; clean up and `raise`"
            elif caught & {"", "Exception", "BaseException"} and not raises and not _uses_caught(node):
                yield f"line {node.lineno}: every error ends here unseen; catch the error you expect, or record it and fail the waiters"
        elif _called(node) == "suppress" and isinstance(node, ast.Call):
            named = {_last_name(argument) for argument in node.args}
            if named & {"CancelledError", "Exception", "BaseException"}:
                yield f"line {node.lineno}: suppresses {', '.join(sorted(named))}; name the error you expect"


def files_stay_readable(source: Source) -> Iterator[str]:
    """A file has at most 600 lines."""
    lines = source.text.count("\n")
    if lines > LONG_FILES.get(source.path, FILE_LINES):
        yield f"{lines} lines, {FILE_LINES} are allowed; find the second noun in it and give that a file"


def functions_stay_readable(source: Source) -> Iterator[str]:
    """A function has at most 60 lines, its docstring not counted."""
    for name, node in functions_of(source):
        lines = function_lines(node)
        if lines > LONG_FUNCTIONS.get(f"{source.path}::{name}", FUNCTION_LINES):
            yield f"line {node.lineno}: {name} has {lines} lines, {FUNCTION_LINES} are allowed; move the work of its branches into helpers"


def nothing_is_left_for_later(source: Source) -> Iterator[str]:
    """No note to oneself stays in the code."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if re.search(r"#.*\b(TOD[O]|FIXM[E]|XX[X])\b", line):
            yield f"line {number}: a note for later; do it, or write it down as an issue"


def sqlite_is_that_of_apsw(source: Source) -> Iterator[str]:
    """Python's own SQLite may be a release that loses commits, and two libraries in one process drop each other's locks on a file."""
    if source.path.startswith("tests/"):
        return  # Tests compare with it.
    for found in source.imports:
        if found.module.split(".")[0] == "sqlite3":
            yield f"line {found.line}: imports sqlite3; use apsw, whose SQLite `require_sound_sqlite` checks"


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        pure_rooms_touch_nothing_outside,
        pure_code_stands_on_pure_code,
        imports_go_down_only,
        rooms_meet_at_the_door,
        tasks_are_made_in_runtime,
        the_outside_is_behind_ports,
        queues_have_a_limit,
        futures_are_resolved_in_one_way,
        errors_are_not_swallowed,
        files_stay_readable,
        functions_stay_readable,
        nothing_is_left_for_later,
        sqlite_is_that_of_apsw,
    )
}


_PLACES = re.compile(
    # Only these web addresses are needed, one of them the name space of Maven's project files; any other, a package registry's above all,
    # belongs into a machine's own configuration.
    r"https?://(?!127[.]0[.]0[.]1|localhost|www[.]apache[.]org|maven[.]apache[.]org/POM/|semver[.]org|[{(])[\w.-]+"
    r"|(?<![\w.~-])/(?:work|home|root|Users)/[\w.]"
)


def text_names_no_place(text: str) -> Iterator[str]:
    """Committed text names no web address but a few, and no folder of one machine. Applies to every committed file, not only to Python."""
    for number, line in enumerate(text.splitlines(), 1):
        found = _PLACES.search(line)
        if found:
            yield f"line {number}: names {found[0]!r}; leave the place to the machine's own configuration"


def functions_of(source: Source) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function with its dotted name within the file."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, child
            deeper = f"{prefix}{child.name}." if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else prefix
            yield from visit(child, deeper)

    return visit(source.tree, "")


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the end, without the docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def _ours(source: Source) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Imports of our own modules, absolute. ``from triplicate import client`` counts as importing the module."""
    for found in source.imports:
        if found.module == PACKAGE and found.names:
            for name in found.names:
                module = f"{PACKAGE}.{name}" if name in ROOMS else PACKAGE
                yield found.line, module, () if name in ROOMS else (name,)
        elif found.module == PACKAGE or found.module.startswith(f"{PACKAGE}."):
            yield found.line, found.module, found.names


def _called(node: ast.AST) -> str:
    return _last_name(node.func) if isinstance(node, ast.Call) else ""


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _caught_names(handler: ast.ExceptHandler) -> set[str]:
    """Last names of the classes a handler catches; the empty name for a bare ``except``."""
    if handler.type is None:
        return {""}
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {_last_name(kind) for kind in kinds}


def _uses_caught(handler: ast.ExceptHandler) -> bool:
    return handler.name is not None and any(
        isinstance(child, ast.Name) and child.id == handler.name for statement in handler.body for child in ast.walk(statement)
    )


_HARMLESS_CALLS = {"random": frozenset[str](), "uuid": frozenset({"UUID"}), "threading": frozenset({"Lock"})}


def _is_harmless(source: Source, module: str) -> bool:
    """Whether ``random`` only names the type of a stream, ``uuid`` only writes a number, ``threading`` only guards what a Worker shares."""
    if module not in _HARMLESS_CALLS:
        return False
    calls = (node.func for node in source.nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    used = {call.attr for call in calls if isinstance(call.value, ast.Name) and call.value.id == module}
    return used <= _HARMLESS_CALLS[module]
