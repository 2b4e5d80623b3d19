"""Generates the blocking facade from the async classes: ``src/triplicate/blocking/*_facade.py``.

Usage: python -m scripts.blocking [--check]

Each public coroutine method of an async class becomes a method that runs it on the background loop and waits. Methods that return an
`asyncio.Future` return a `concurrent.futures.Future`, and async iterators become iterators. Parameters, defaults and the first paragraph
of the docstring are copied. Properties and plain methods are copied only where the table below names them.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from scripts.blocking_twins import FACADES, RETURNS, Facade, Functions, Twin

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "triplicate" / "blocking"
WIDTH = 140

ROOMS = ("client", "log", "sql", "kv", "embedded", "metadata", "ledger", "runtime", "errors")
"""Packages whose exports may occur in annotations."""


class Names:
    """The names that generated code uses, and the import statements for them."""

    def __init__(self, local: Sequence[str]) -> None:
        self.runtime: dict[str, str] = {}
        self.typing: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self._local = frozenset(local)

    def use(self, node: ast.AST, module: ModuleType, *, at_runtime: bool = False) -> None:
        """Record the names in an expression of one of our modules."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id not in self._local:
                self._add(each.id, module, at_runtime=at_runtime)

    def add(self, statement: str, name: str, *, at_runtime: bool = False) -> None:
        (self.runtime if at_runtime else self.typing)[name] = statement

    def _add(self, name: str, module: ModuleType, *, at_runtime: bool) -> None:
        if hasattr(builtins, name) or name in self.runtime or (name in self.typing and not at_runtime):
            return
        own = module.__name__.split(".")[1]
        # Rooms may export different things of one name.
        for room in sorted(ROOMS, key=lambda room: room != own):
            exported = importlib.import_module(f"triplicate.{room}")
            if name in getattr(exported, "__all__", dir(exported)):
                self.add(f"from triplicate.{room} import {name}", name, at_runtime=at_runtime)
                return
        for statement in ast.walk(_parsed(module)):
            if isinstance(statement, ast.ImportFrom) and any(alias.name == name for alias in statement.names):
                if statement.module is None or statement.module.startswith("triplicate"):
                    continue
                self.add(f"from {statement.module} import {name}", name, at_runtime=at_runtime)
                return
            if isinstance(statement, ast.Import) and any(alias.name == name for alias in statement.names):
                self.add(f"import {name}", name, at_runtime=at_runtime)
                return
        for statement in _parsed(module).body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.target.id == name:
                self.use(statement.annotation, module)
                self.constants[name] = ast.unparse(statement)
                return
        raise SystemExit(f"{module.__name__} uses {name} in the signature of a public method; export it from its room")


def _parsed(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def methods_of(original: type, *, inherited: bool) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ModuleType]]:
    """The public methods and properties of a class, in order, without class methods.

    Args:
        inherited: also those of its bases, which come first.
    """
    for each in [each for each in reversed(original.__mro__) if each.__module__.startswith("triplicate")] if inherited else [original]:
        yield from _own_methods(each)


def _own_methods(original: type) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ModuleType]]:
    module = sys.modules[original.__module__]
    for statement in _parsed(module).body:
        if isinstance(statement, ast.ClassDef) and statement.name == original.__name__:
            for each in statement.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_") and not _is_of_class(each):
                    yield each, module


def _text(node: ast.FunctionDef | ast.AsyncFunctionDef, see: str) -> list[str]:
    docs = (ast.get_docstring(node) or "").split("\n\n")[0]
    first = " ".join(docs.split())
    if not first or first.startswith(("Raises", "Args")):
        return [f'"""See `{see}`."""']
    one_line = f'"""{first} See `{see}`."""'
    if len(one_line) + 8 <= WIDTH:
        return [one_line]
    head, *others = textwrap.wrap(f'"""{first}', WIDTH - 8)
    return [head, *others, "", f"See `{see}`.", '"""']


def _is_of_class(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id in ("classmethod", "staticmethod") for each in node.decorator_list)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef, skip: int) -> tuple[str, str, list[str]]:
    """(the parameters as written, the arguments of the call, names of iterables that must be read on the caller's thread)."""
    spec = node.args
    call = [each.arg for each in spec.args[skip:]] + [f"{each.arg}={each.arg}" for each in spec.kwonlyargs]
    typed = [(each.arg, ast.unparse(each.annotation)) for each in (*spec.args[skip:], *spec.kwonlyargs) if each.annotation is not None]
    lazy = [name for name, annotation in typed if annotation.startswith("Iterable[")]
    if spec.vararg is not None:
        call.insert(len(spec.args) - skip, f"*{spec.vararg.arg}")
    trimmed = ast.arguments([], spec.args[skip:], spec.vararg, spec.kwonlyargs, spec.kw_defaults, None, spec.defaults)
    return ast.unparse(trimmed), ", ".join(call), lazy


def _record(node: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType, names: Names) -> None:
    for each in (*node.args.args, *node.args.kwonlyargs, node.args.vararg):
        if each is not None and each.annotation is not None:
            names.use(each.annotation, module)
    for default in (*node.args.defaults, *node.args.kw_defaults):
        if default is not None:
            names.use(default, module, at_runtime=True)


def _result(returned: str, value: str, loop: str) -> tuple[str, str]:
    """(the return annotation, the expression), with an async class replaced by its twin."""
    if returned in RETURNS:
        return RETURNS[returned], f"{RETURNS[returned]}({loop}, {value})"
    return returned, value


def _method(twin: Twin, node: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType, names: Names) -> list[str]:
    returned = ast.unparse(node.returns) if node.returns is not None else "None"
    see = f"{twin.original.__name__}.{node.name}"
    parameters, call, lazy = _arguments(node, 1)
    _record(node, module, names)
    head = f"def {node.name}(self{', ' if parameters else ''}{parameters})"
    loop, original = f"self.{twin.loop}", f"self._{twin.attribute}"
    first = [f"{name} = list({name})" for name in lazy]
    value = f"{original}.{node.name}({call})"
    if returned.startswith("AsyncIterator["):
        returned = returned.removeprefix("Async")
        names.add("from collections.abc import Iterator", "Iterator")
    if node.name in twin.bodies:
        lines = twin.bodies[node.name].split("\n")
    elif returned.startswith("asyncio.Future["):
        returned = returned.replace("asyncio.", "concurrent.futures.")
        names.add("import concurrent.futures", "concurrent")
        lines = [f"return {loop}.start(lambda: {value})"]
    elif returned.startswith("Iterator["):
        lines = [f"return {loop}.iterate(lambda: {value})"]
    elif isinstance(node, ast.AsyncFunctionDef):
        returned, value = _result(returned, f"{loop}.call({value})", loop)
        lines = [value if returned == "None" else f"return {value}"]
    else:
        returned, value = _result(returned, f"{loop}.run(lambda: {value})", loop)
        lines = [f"return {value}"]
    if node.returns is not None and returned not in RETURNS.values():
        names.use(ast.parse(returned, mode="eval"), module)
    return [f"{head} -> {returned}:", *(f"    {line}" for line in (*_text(node, see), *first, *lines)), ""]


def _property(twin: Twin, node: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType, names: Names) -> list[str]:
    assert node.returns is not None, f"{node.name} of {twin.source} has no type"
    names.use(node.returns, module)
    head = ["@property", f"def {node.name}(self) -> {ast.unparse(node.returns)}:"]
    text = _text(node, f"{twin.original.__name__}.{node.name}")
    return [*head, *(f"    {line}" for line in (*text, f"return self._{twin.attribute}.{node.name}")), ""]


def _opening(twin: Twin, names: Names) -> list[str]:
    room, _, original = twin.source.partition(":")
    names.add(f"from triplicate.{room} import {original}", original)
    names.add("from triplicate.blocking.background_loop import BackgroundLoop", "BackgroundLoop")
    lines = [f"def __init__(self, loop: BackgroundLoop, {twin.attribute}: {original}) -> None:"]
    if twin.base:
        lines.append(f"    super().__init__(loop, {twin.attribute})")
    else:
        lines.append(f"    self.{twin.loop} = loop")
    lines.append(f"    self._{twin.attribute} = {twin.attribute}")
    lines += [f"    self.{name} = {twin.attribute}.{name}" for name in twin.fields]
    if twin.iterator == "batched":
        lines.append(f"    self._batches = EntryBatches(loop, {twin.attribute})")
    if twin.iterator == "records":
        lines.append(f"    self._batches = RecordBatches(loop, {twin.attribute})")
    return [*lines, ""]


def _iterator(twin: Twin, names: Names) -> list[str]:
    item = "LogEntry" if twin.iterator in ("LogEntry", "batched") else "LogRecord"
    names.add(f"from triplicate.log import {item}", item)
    names.add("from typing import Self", "Self")
    start = ["def __iter__(self) -> Self:", "    return self", "", f"def __next__(self) -> {item}:"]
    if twin.iterator in ("batched", "records"):
        return [*start, "    return next(self._batches)", ""]
    local = item.removeprefix("Log").lower()
    return [
        *start,
        f"    {local} = self.next_{local}()",
        f'    assert {local} is not None, "without a time limit, the reader returns {"an" if local == "entry" else "a"} {local} or raises"',
        f"    return {local}",
        "",
    ]


def _handle(twin: Twin, names: Names) -> list[str]:
    names.add("from types import TracebackType", "TracebackType")
    names.add("from typing import Self", "Self")
    return [
        "def __enter__(self) -> Self:",
        "    return self",
        "",
        "def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:",
        f"    self.{twin.loop}.call(self._{twin.attribute}.__aexit__(kind, error, trace))",
        "",
    ]


def _class(twin: Twin, names: Names) -> list[str]:
    body = _opening(twin, names)
    for node, module in methods_of(twin.original, inherited=not twin.base):
        if _is_property(node):
            if node.name in twin.properties:
                body += _property(twin, node, module, names)
        elif node.name in twin.left_out:
            continue
        elif node.name == twin.closes:
            closing = _method(twin, node, module, names)
            body += [closing[0].replace(node.name, "close", 1), *closing[1:]]
        elif node.name in twin.on_loop or has_twin(node):
            body += _method(twin, node, module, names)
    body += twin.extra
    if twin.iterator:
        body += _iterator(twin, names)
    if twin.handle and not twin.base:
        body += _handle(twin, names)
    head = f"class {twin.name}({twin.base}):" if twin.base else f"class {twin.name}:"
    return [head, f'    """{twin.docs}"""', "", *(f"    {line}" if line else "" for line in body), ""]


def has_twin(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method is a coroutine, or returns a future or an async iterator."""
    returned = ast.unparse(node.returns) if node.returns is not None else ""
    return isinstance(node, ast.AsyncFunctionDef) or returned.startswith(("asyncio.Future[", "AsyncIterator["))


def _leave_out(arguments: ast.arguments, left_out: Sequence[str]) -> None:
    """Remove parameters by their names. Those by place have defaults and are the last."""
    by_name = [pair for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if pair[0].arg not in left_out]
    arguments.kwonlyargs, arguments.kw_defaults = [each for each, _ in by_name], [default for _, default in by_name]
    while arguments.args[-1].arg in left_out:
        arguments.args.pop()
        arguments.defaults.pop()


def _functions(spec: Functions, names: Names) -> list[str]:
    names.add("from triplicate.client import Client", "Client")
    names.add("from triplicate.blocking.background_loop import BackgroundLoop", "BackgroundLoop")
    lines = [f"class {spec.name}:", f'    """{spec.docs}"""', ""]
    body = ["def __init__(self, loop: BackgroundLoop, client: Client) -> None:", "    self._loop = loop", "    self._client = client", ""]
    room = importlib.import_module(f"triplicate.{spec.room}")
    for name, function in spec.methods.items():
        module = sys.modules[getattr(room, function).__module__]
        node = next(each for each in _parsed(module).body if isinstance(each, ast.AsyncFunctionDef) and each.name == function)
        _leave_out(node.args, spec.left_out)
        parameters, call, _ = _arguments(node, 1)
        node.args.args = node.args.args[1:]
        _record(node, module, names)
        assert node.returns is not None, f"{function} has no return type"
        names.use(node.returns, module)
        names.add(f"from triplicate.{spec.room} import {function}", function, at_runtime=True)
        head = f"def {name}(self{', ' if parameters else ''}{parameters}) -> {ast.unparse(node.returns)}:"
        value = f"return self._loop.call({function}(self._client{', ' if call else ''}{call}))"
        body += [head, *(f"    {line}" for line in (*_text(node, function), value)), ""]
    return [*lines, *(f"    {line}" if line else "" for line in body), ""]


def generate(facade: Facade) -> str:
    """The text of one module."""
    names = Names([twin.name for each in FACADES for twin in each.twins])
    body: list[str] = []
    for twin in facade.twins:
        body += _class(twin, names)
    for functions in facade.functions:
        body += _functions(functions, names)
    typing = sorted({text for name, text in names.typing.items() if name not in names.runtime})
    head = [
        f'"""{facade.docs} Generated by `scripts/blocking.py` from the async classes; do not edit."""',
        "",
        "from __future__ import annotations",
        "",
    ]
    head += ["from typing import TYPE_CHECKING", *facade.imports, *sorted(set(names.runtime.values())), ""]
    head += ["if TYPE_CHECKING:", *(f"    {text}" for text in typing), ""]
    text = "\n".join([*head, *names.constants.values(), "", *body])
    return _tidy(text)


def _tidy(text: str) -> str:
    """Sort the imports and format."""
    options = ["-q", "--config", str(ROOT / "pyproject.toml"), "--stdin-filename", str(TARGET / "generated.py"), "-"]
    for step in (["check", "--select", "I", "--fix"], ["format"]):
        command = [sys.executable, "-m", "ruff", *step, *options]
        text = subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout
    return text


def is_current(facade: Facade) -> bool:
    """Whether the module in the source tree is equal to the generated one."""
    return (TARGET / f"{facade.module}.py").read_text(encoding="utf-8") == generate(facade)


def main(arguments: Sequence[str]) -> int:
    """Write the modules, or with ``--check`` compare them; returns the exit code."""
    if "--check" not in arguments:
        for facade in FACADES:
            (TARGET / f"{facade.module}.py").write_text(generate(facade), encoding="utf-8")
        return 0
    stale = [facade.module for facade in FACADES if not is_current(facade)]
    for module in stale:
        print(f"{module}.py differs from the async classes: run python -m scripts.blocking", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
