"""For all tests: property tests draw new examples on a developer's machine, and the same ones each time where CI is set.

A failure found by chance on somebody else's change would say nothing about that change.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
