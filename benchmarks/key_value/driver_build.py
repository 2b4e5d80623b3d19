"""Builds the load's program, and installs etcd."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.ledger.processes import BUILD, CaseFailed

SOURCES = Path(__file__).resolve().parent / "driver"
PROGRAM = BUILD / "key-value" / "driver"
LIMIT_S = 600.0


def build_driver() -> Path:
    """Build the program with Go, with the modules of ``go.sum``. Returns its path.

    Raises:
        CaseFailed: Go is missing, or the build failed.
    """
    if shutil.which("go") is None:
        raise CaseFailed("the load needs Go: install golang-go (Debian)")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["go", "build", "-mod=readonly", "-o", str(PROGRAM), "."],
        cwd=SOURCES,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise CaseFailed(f"the load's program cannot be built: {done.stderr.strip()[-500:]}")
    return PROGRAM


def find_etcd() -> str:
    """The path of etcd, which is installed from Debian's packages where it is missing and this user may.

    Raises:
        CaseFailed: it cannot be installed.
    """
    if shutil.which("etcd") is None and os.getuid() == 0 and shutil.which("apt-get") is not None:
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "etcd-server"]
        variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(install, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
    found = shutil.which("etcd")
    if found is None:
        raise CaseFailed("etcd is missing: install etcd-server (Debian)")
    return found
