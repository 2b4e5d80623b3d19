"""An error of standard output does not name it."""

from __future__ import annotations

import io
from collections.abc import Callable

from triplicate.cli.terminal import pipes

TESTS = ["tests/unit/cli/terminal/test_pipes.py::test_an_error_of_standard_output_names_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(pipes, "_NamedOutput", io.FileIO)
