"""Fault points: moments of the protocol that have a name, so that a schedule can be forced there.

`@fault_point("client.metadata_write")` on a method names the moment right before its body runs. It enters the name into a register and
hands the method back as it is: in a real process nothing of it is left, not even a call. The simulator, while it has a world, puts
wrappers around what the register names, and can hold or strike a node there.
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
    """Where a name leads: the module, and the dotted path in it of a function or method."""

    name: str
    module: str
    qualified_name: str
    is_async: bool


_REGISTER: dict[str, FaultPoint] = {}


def fault_point(name: str) -> Callable[[Function], Function]:
    """Name the moment before a function or method, sync or async; the function is returned unchanged.

    Beneath `@staticmethod` and `@classmethod`, not above them. A function is found by its module and qualified name, so it cannot be one
    that another function makes; and where it was put aside when modules were loaded (in a table of methods, say) it is not watched.

    Args:
        name: the room and the moment, as ``client.metadata_write``.

    Raises:
        ArgumentError: the name is malformed or taken, or the function cannot be a fault point.
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
            raise ArgumentError(f"fault point {name}: {function.__qualname__} is made anew at each call and cannot be found by its name")
        point = FaultPoint(name, function.__module__, function.__qualname__, inspect.iscoroutinefunction(function))
        known = _REGISTER.get(name)
        # The same function again is its module being loaded again.
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
    """All that modules imported so far have named, by name: a live view."""
    return MappingProxyType(_REGISTER)
