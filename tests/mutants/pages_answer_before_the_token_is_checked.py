"""The pages are served to requests with any token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TESTS = [
    "tests/unit/runtime/test_metrics_server_guarded.py::test_a_request_without_the_right_token_is_told_nothing",
    "tests/unit/cli/process/test_page_access.py::test_a_protected_page_is_read_by_our_commands_and_by_nobody_else",
]


def apply(patch: Any) -> None:
    from triplicate.runtime import metrics_server

    def everybody(self: object, target: bytes, headers: Sequence[bytes]) -> bool:
        return True

    patch(metrics_server._MetricsConnection, "_is_admitted", everybody)
