"""Errors of this program as Spark shows them: the message, without the way through this program's calls.

Spark puts the traceback of a data source before its message, tens of lines, and its settings that shorten it also hide the tracebacks of
users' own functions. The traceback of an error that is no fault of this program helps nobody.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from triplicate.errors import TriplicateError

Source = TypeVar("Source", bound=type)


def plain_errors(*methods: str) -> Callable[[Source], Source]:
    """A decorator of a class: the named methods, which Spark calls, raise errors of this program without their tracebacks."""

    def decorate(kind: Source) -> Source:
        for name in methods:
            setattr(kind, name, (_plain_rows if name == "read" else _plain)(getattr(kind, name)))
        return kind

    return decorate


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except TriplicateError as error:
            raise error.with_traceback(None) from None

    return call


def _plain_rows(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def rows(*args: Any, **named: Any) -> Any:
        try:
            yield from method(*args, **named)
        except TriplicateError as error:
            raise error.with_traceback(None) from None

    return rows
