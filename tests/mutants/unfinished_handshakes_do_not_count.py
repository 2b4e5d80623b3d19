"""Connections of the pages that have not ended their handshake do not count towards the limit."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/runtime/test_metrics_server_guarded.py::test_a_handshake_that_is_never_finished_is_cut_off_and_counts_towards_the_limit",
]


def apply(patch: Any) -> None:
    from triplicate.runtime import metrics_server, start_eagerly

    def uncounted(work: Any, spawn: Any) -> Any:
        server = work.cr_frame.f_locals["self"]._server
        task = start_eagerly(work, spawn)
        server.open.clear()
        return task

    patch(metrics_server, "start_eagerly", uncounted)
