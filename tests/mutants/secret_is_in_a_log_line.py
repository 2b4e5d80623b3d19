"""A request to the pages is traced with its headers, and so with its token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TESTS = ["tests/unit/runtime/test_metrics_server_guarded.py::test_no_token_is_traced_right_or_wrong"]


def apply(patch: Any) -> None:
    from triplicate.runtime import metrics_server

    admit = metrics_server._MetricsConnection._is_admitted

    def talkative(self: Any, target: bytes, headers: Sequence[bytes]) -> bool:
        self._server.host.trace("pages.asked", headers=headers)
        return admit(self, target, headers)

    patch(metrics_server._MetricsConnection, "_is_admitted", talkative)
