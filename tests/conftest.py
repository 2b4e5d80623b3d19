"""For all tests: property tests draw new examples on a developer's machine, and the same ones each time where CI is set.

A failure found by chance on somebody else's change would say nothing about that change.
"""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

CURRENT_TEST = os.environ.get("TRIPLICATE_CURRENT_TEST")
"""File that holds the name of the test that runs, for a runner that ends a process which takes too long."""


def pytest_runtest_logstart(nodeid: str) -> None:
    if CURRENT_TEST:
        Path(CURRENT_TEST).write_text(nodeid, encoding="utf-8")
