"""SIGHUP and SIGUSR1 end a server, as they end a program that does not handle them."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.process import serving

TESTS = ["tests/unit/cli/process/test_serving_signals.py::test_a_process_outlives_signals_that_mean_no_end"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(serving, "outlive_hangup", lambda on_hangup=None: None)
