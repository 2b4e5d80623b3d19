"""Freed memory is used again; measured in processes of their own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

READ_OVER_AND_OVER = """
import resource, sys
from triplicate.runtime import let_freed_memory_linger

if sys.argv[1] == "lingers":
    let_freed_memory_linger()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    payloads = [bytes(1024) for _ in range(4096)]
    del payloads
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", READ_OVER_AND_OVER, how], capture_output=True, text=True, check=True, timeout=60)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries treat freed memory in their own way")
def test_memory_of_what_was_read_serves_what_is_read_next() -> None:
    assert page_faults("lingers") < page_faults("does not") / 3
