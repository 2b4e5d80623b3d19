"""A scalar function that returns NULL where an argument is NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from triplicate.sql.core.column_codec import Value


class Scalar(NamedTuple):
    """A function of values that are not NULL, and the numbers of arguments with which it can be called."""

    function: Callable[..., Value]
    argument_counts: tuple[int, ...]

    def call(self, *arguments: Value) -> Value:
        """The function's result, or NULL."""
        return None if None in arguments else self.function(*arguments)
