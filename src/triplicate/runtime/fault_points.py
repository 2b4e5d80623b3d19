"""Fault points: named moments of the protocol at which a test can force a schedule.

`@fault_point("client.metadata_write")` on a method names the moment right before its body runs. The decorator registers the name and
returns the method unchanged, so a real process pays nothing, not even a call. The simulator wraps the registered methods while a world
runs, and can hold a node or inject a fault there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from triplicate.errors import ArgumentError

Function = TypeVar("Function", bound=Callable[..., Any])

POINT_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
"""A room, a dot, and the moment."""


@dataclass(frozen=True, slots=True)
class FaultPoint:
    """A registered function or method: its module, and its dotted path in the module."""

    name: str
    module: str
    qualified_name: str
    is_async: bool


_REGISTER: dict[str, FaultPoint] = {}


def fault_point(name: str) -> Callable[[Function], Function]:
    """Name the moment before a function or method, sync or async; the function is returned unchanged.

    Apply it beneath `@staticmethod` and `@classmethod`, not above them. A function is found by its module and qualified name, so it cannot
    be local to another function. Calls through a reference that was stored at import, as in a table of methods, are not intercepted.

    Args:
        name: the room and the moment, as ``client.metadata_write``.

    Raises:
        ArgumentError: the name is malformed or in use, or the function cannot be a fault point.
    """
    if POINT_NAME.fullmatch(name) is None:
        raise ArgumentError(f"{name!r} is no name of a fault point: write room.moment in lower case")

    def register(function: Function) -> Function:
        if not inspect.isfunction(function):
            raise ArgumentError(
                f"fault point {name} is not on a function: it belongs beneath staticmethod, classmethod and other decorators"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ArgumentError(f"fault point {name}: the body of generator {function.__qualname__} does not run when it is called")
        if "<locals>" in function.__qualname__:
            raise ArgumentError(f"fault point {name}: {function.__qualname__} is created at each call and cannot be found by its name")
        point = FaultPoint(name, function.__module__, function.__qualname__, inspect.iscoroutinefunction(function))
        known = _REGISTER.get(name)
        # A module that is reloaded registers its functions again.
        if known is not None and (known.module, known.qualified_name) != (point.module, point.qualified_name):
            raise ArgumentError(f"fault point {name} is {known.module}.{known.qualified_name} already")
        others = [
            other.name for other in _REGISTER.values() if (other.module, other.qualified_name) == (point.module, point.qualified_name)
        ]
        if others not in ([], [name]):
            raise ArgumentError(f"fault point {name}: {function.__qualname__} is {others[0]} already, and a moment has one name")
        _REGISTER[name] = point
        return function

    return register


def fault_points() -> Mapping[str, FaultPoint]:
    """All fault points of the modules imported so far, by name. A live view."""
    return MappingProxyType(_REGISTER)
