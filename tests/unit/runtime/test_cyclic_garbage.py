"""The garbage collector of a server, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

SERVE = """
import gc, weakref
from triplicate.runtime import collect_garbage_seldom

class Node:
    pass

collections = []
gc.callbacks.append(lambda phase, info: phase == "start" and collections.append(info["generation"]))
collect_garbage_seldom()
collections.clear()
living = [Node() for _ in range(15_000)]
early = len(collections)
cycle = Node()
cycle.itself = cycle
found = weakref.ref(cycle)
del cycle
living += [Node() for _ in range(30_000)]
print(gc.get_freeze_count() > 1000, early, found() is None)
"""


def test_a_server_collects_seldom_and_still_finds_cycles() -> None:
    done = subprocess.run([sys.executable, "-c", SERVE], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "0", "True"]
