"""The demonstration does not look for secrets on command lines."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from triplicate_demo import security_audit

TESTS = ["tests/unit/demo/test_security_audit.py::test_a_secret_in_a_log_or_on_a_command_line_is_reported_and_not_repeated"]


def without_children() -> SimpleNamespace:
    return SimpleNamespace(children=lambda recursive: [])


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(security_audit, "psutil", SimpleNamespace(Process=without_children))
