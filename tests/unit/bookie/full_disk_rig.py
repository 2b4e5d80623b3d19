"""Disks of a bookie on which operations find no space."""

from __future__ import annotations

import errno
import os
from collections import Counter

from tests.unit.bookie.bookie_rig import Rig

KIB = 1024


class NoSpace:
    """While `prefix` is set, writes to paths that begin with it find no space. Counts the writes per file."""

    def __init__(self, rig: Rig, prefix: str) -> None:
        self.prefix = prefix
        self.refused = 0
        self.writes: Counter[str] = Counter()
        rig.disk.before_operation = self

    def __call__(self, kind: str, path: str) -> None:
        if kind == "write":
            self.writes["entries" if path.endswith(".entries") else path.rpartition("/")[2]] += 1
        if kind in ("write", "create") and self.prefix and path.startswith(self.prefix):
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
