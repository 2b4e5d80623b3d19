"""The generated facade against the async classes: nothing is missing, and nothing is stale."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from scripts.blocking import generate, has_twin, is_current
from scripts.blocking_twins import FACADES, TWINS, Facade, Functions, Twin
from triplicate import blocking
from triplicate.blocking.blocking_client import BlockingClient
from triplicate.blocking.iterators import BlockingTail

FUNCTIONS = [functions for facade in FACADES for functions in facade.functions]
METHODS = [(functions, method) for functions in FUNCTIONS for method in functions.methods]


def twin_of(twin: Twin) -> type:
    module = next(facade.module for facade in FACADES if twin in facade.twins)
    found: type = getattr(importlib.import_module(f"triplicate.blocking.{module}"), twin.name)
    return found


def waiting_methods(original: type) -> dict[str, Callable[..., Any]]:
    """The public methods that return a coroutine, a future or an async iterator."""
    found: dict[str, Callable[..., Any]] = {}
    for name, member in inspect.getmembers(original, inspect.isfunction):
        returned = str(inspect.signature(member).return_annotation)
        if not name.startswith("_") and (inspect.iscoroutinefunction(member) or returned.startswith(("asyncio.Future[", "AsyncIterator["))):
            found[name] = member
    return found


def parameters(function: Callable[..., Any]) -> list[tuple[str, object, object, object]]:
    return [(each.name, each.kind, each.default, each.annotation) for each in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_each_method_that_waits_has_a_blocking_twin_with_the_same_parameters(twin: Twin) -> None:
    facade = twin_of(twin)
    for name, method in waiting_methods(twin.original).items():
        if name in twin.left_out:
            assert not hasattr(facade, name), f"{twin.name} has {name}, which the table leaves out"
            continue
        blocking_name = "close" if name == twin.closes else name
        assert hasattr(facade, blocking_name), f"{twin.name} lacks {name}: run scripts/blocking.py"
        assert parameters(getattr(facade, blocking_name)) == parameters(method), f"{twin.name}.{blocking_name}"


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_what_the_table_names_is_there(twin: Twin) -> None:
    for name in (*twin.left_out, *twin.on_loop, *twin.bodies, *twin.properties):
        assert hasattr(twin.original, name), f"{twin.source} has no {name}: correct the table in scripts/blocking_twins.py"


@pytest.mark.parametrize(("functions", "method"), METHODS, ids=lambda each: each if isinstance(each, str) else "")
def test_each_function_on_a_cluster_has_a_method_with_the_same_parameters(functions: Functions, method: str) -> None:
    room = importlib.import_module(f"triplicate.{functions.room}")
    facade = getattr(blocking, functions.name)
    expected = [each for each in parameters(getattr(room, functions.methods[method]))[1:] if each[0] not in functions.left_out]
    assert parameters(getattr(facade, method))[1:] == expected


@pytest.mark.parametrize("facade", FACADES, ids=lambda facade: facade.module)
def test_the_modules_are_what_the_script_generates(facade: Facade) -> None:
    assert is_current(facade), f"{facade.module}.py differs from the async classes: run python -m scripts.blocking"


def test_a_change_of_an_async_class_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    facade = FACADES[0]
    before = generate(facade)
    monkeypatch.setattr("scripts.blocking.has_twin", lambda node: node.name != "force" and has_twin(node))
    assert generate(facade) != before
    assert "def force" in before
    assert not is_current(facade)


def test_the_public_names_are_there() -> None:
    assert all(hasattr(blocking, name) for name in blocking.__all__)
    assert blocking.BlockingClient is BlockingClient
    assert blocking.BlockingTail is BlockingTail
    with pytest.raises(AttributeError):
        _ = blocking.BlockingNothing
