"""The demonstration takes every failure of an intruder for a refusal, also that of a server that does not run."""

from __future__ import annotations

import re
from collections.abc import Callable

from triplicate_demo import security_audit

TESTS = [
    "tests/unit/demo/test_security_audit.py::test_a_bookie_is_closed_only_if_it_refuses_the_client",
    "tests/unit/demo/test_security_audit.py::test_every_node_is_tried_in_clear_and_by_a_wrong_password[Connection refused-Connection refused]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(security_audit, "REFUSALS", re.compile(""))
