"""EXPIRE counts as a read, which runs without the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.kv.resp.core import command_table

TESTS = [
    "tests/unit/kv/resp/core/test_command_table.py::test_a_command_is_marked_as_a_read_exactly_if_it_only_gets[expire]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    spec = command_table.TABLE[b"expire"]
    read = spec.read
    marked = replace(spec, read=lambda words: read(words)._replace(is_read=True))  # type: ignore[union-attr]
    patch(command_table, "TABLE", command_table.TABLE | {b"expire": marked})
