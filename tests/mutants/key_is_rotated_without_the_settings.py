"""`triplicate log key rotate` opens a client without certificates, which no requirement refuses."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.terminal import client_run
from triplicate.client import connect

TESTS = ["tests/unit/cli/data_commands/test_log_keys.py::test_a_key_is_not_rotated_over_an_unprotected_connection"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(client_run, "client_of", connect)
