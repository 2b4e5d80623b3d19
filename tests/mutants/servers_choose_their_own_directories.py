"""A server starts with a name and directories that nobody chose."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.config import Configuration

TESTS = ["tests/unit/cli/test_main.py::test_a_server_does_not_start_without_a_name_and_directories"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Configuration, "require", lambda configuration, *needed: None)
