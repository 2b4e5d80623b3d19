"""format() of many long texts copies all of them while nothing else runs."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.translate.render_calls import CallRenderer

TESTS = ["tests/unit/sql/executor/test_scalars.py::test_a_call_is_passed_no_more_than_two_long_texts_at_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(CallRenderer, "_format", lambda self, node: self.call("triplicate_format", node, *node.arguments))
