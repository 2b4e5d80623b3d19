"""A "no entry" counts although it comes from a process at a bookie's former address."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/connection/test_connector.py::test_answers_that_say_no_count_again_once_the_address_is_confirmed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.connection import bookie_channel

    patch(bookie_channel, "EXPLICIT_NEGATIVES", ())
