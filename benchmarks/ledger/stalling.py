"""``triplicate`` with a disk that hangs: while FILE exists, no write and no sync of this process returns.

    stalling.py FILE bookie --bookie-id …

Only writes and syncs block, each in its calling thread, as with a hanging disk; reads continue.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

CALLS = ("pwritev", "fdatasync", "fsync", "posix_fallocate")
POLL_S = 0.01


def held_up(call: Callable[..., Any], flag: str) -> Callable[..., Any]:
    def wait_then_call(*arguments: Any) -> Any:
        while os.path.exists(flag):
            time.sleep(POLL_S)
        return call(*arguments)

    return wait_then_call


def main() -> None:
    flag, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    for name in CALLS:
        setattr(os, name, held_up(getattr(os, name), flag))
    from triplicate.cli.main import main as triplicate

    triplicate()


if __name__ == "__main__":
    main()
