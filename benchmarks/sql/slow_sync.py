"""The library that makes each sync cost more, built by the system's C compiler from `slow_sync.c` when a run begins.

Docs: ``docs/decisions/0045-a-preloaded-library-slows-syncs.md``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.ledger.processes import CaseFailed

DELAY_US = 2000
SOURCE = Path(__file__).with_name("slow_sync.c")
BUILD_LIMIT_S = 60.0
TRIAL = """
import os, sys, time
count = int(sys.argv[2])
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
began = time.perf_counter()
for number in range(count):
    os.pwrite(file, b"x" * 4096, number * 4096)
    os.fdatasync(file)
print((time.perf_counter() - began) / count * 1000)
"""


def build(folder: Path) -> Path:
    """Compile the library into a folder and see it delay a sync.

    Raises:
        CaseFailed: there is no C compiler, it fails, or the library has no effect, as with a statically linked Python.
    """
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise CaseFailed("there is no C compiler (cc, gcc or clang) to build the library that slows syncs")
    target = folder / "slow_sync.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-Wall", "-o", str(target), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False)
    if done.returncode:
        raise CaseFailed(f"{compiler} does not build the library that slows syncs: {done.stderr.strip()[-300:]}")
    target.chmod(0o755)
    found_ms = measured_ms(folder, environment(target), count=3)
    if found_ms < DELAY_US / 1000:
        raise CaseFailed(f"the library that slows syncs has no effect: a sync takes {found_ms:.2f} ms")
    return target


def environment(library: Path) -> Mapping[str, str]:
    """Variables for a process whose syncs shall be slower."""
    return {"LD_PRELOAD": str(library), "SLOW_SYNC_US": str(DELAY_US)}


def measured_ms(folder: Path, variables: Mapping[str, str], count: int = 50) -> float:
    """Mean time of a 4 KiB write with fdatasync, in milliseconds, in a process with these variables."""
    path = folder / "syncs"
    command = [sys.executable, "-c", TRIAL, str(path), str(count)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=True, env={**os.environ, **variables}, cwd=folder
        )
    finally:
        path.unlink(missing_ok=True)
    return float(done.stdout)
