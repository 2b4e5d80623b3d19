"""Spark shows tens of lines of this program's calls before the message of an error."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/core/test_plain_errors.py::test_the_message_of_an_error_of_ours_is_among_the_first_lines"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.core import plain_errors

    patch(plain_errors, "_plain", lambda method: method)
