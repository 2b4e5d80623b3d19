"""Metrics and probes are always served on 127.0.0.1, so no other machine can scrape them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/cli/process/test_probes.py::test_a_process_is_healthy_and_not_ready_until_it_serves_and_while_it_ends[::1]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.process import serving
    from triplicate.runtime import Host, Listener, Metrics, serve_metrics

    async def serve(host: Host, metrics: Metrics, port: int, address: str, *more: Any, **named: Any) -> Listener:
        return await serve_metrics(host, metrics, port, "127.0.0.1", *more, **named)

    patch(serving, "serve_metrics", serve)
