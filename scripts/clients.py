"""Install PostgreSQL clients in other languages for tests/clients: pgx (Go), node-postgres (Node) and pgjdbc (Java).

Usage: clients.py

Go, Node and the jar of pgjdbc come from Debian's packages if this system is Debian and the user root. Modules have the versions of
``go.sum`` and ``package-lock.json``. The results are in ``build/clients``, and are rebuilt when their sources change. The script names
parts that it cannot install; the tests that need them are skipped with that reason.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tests" / "clients"
BUILD = ROOT / "build" / "clients"
JAR = Path("/usr/share/java/postgresql.jar")
LIMIT_S = 600
TRIES = 3


def say(text: str) -> None:
    print(f"clients: {text}", flush=True)


def tried(what: str, command: list[str], folder: Path = ROOT, **variables: str) -> bool:
    """Run a command that may download; retry it if it fails."""
    tail = ""
    for _ in range(TRIES):
        try:
            answer = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            tail = f"no end within {LIMIT_S} s"
            continue
        if answer.returncode == 0:
            return True
        tail = "\n".join((answer.stdout + answer.stderr).strip().splitlines()[-5:])
    say(f"{what} failed: {tail}")
    return False


def install(packages: dict[str, bool]) -> None:
    """Install Debian's packages whose value is False, separately, so that a missing one does not stop the others."""
    missing = [name for name, there in packages.items() if not there]
    if not missing:
        return
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        say(f"missing: {' '.join(missing)} (names of Debian's packages); install them and run make setup again")
        return
    if not tried("renewing the package lists", ["apt-get", "update", "-qq"]):
        say("going on with the old package lists")
    for name in missing:
        say(f"installing {name}")
        tried(
            f"the installation of {name}",
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", name],
            DEBIAN_FRONTEND="noninteractive",
        )


def digest_of(paths: list[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def is_current(name: str, paths: list[Path]) -> bool:
    stamp = BUILD / f"{name}.stamp"
    return stamp.exists() and stamp.read_text() == digest_of(paths)


def build_pgx() -> None:
    sources = [SOURCES / "go" / name for name in ("go.mod", "go.sum", "main.go")]
    if is_current("pgx", sources) or shutil.which("go") is None:
        return
    say("building the client with pgx")
    # Use the installed compiler, without downloading a newer one.
    build = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(BUILD / "pgx"), "."]
    if tried("the build with pgx", build, SOURCES / "go", GOTOOLCHAIN="local", GOFLAGS=""):
        (BUILD / "pgx.stamp").write_text(digest_of(sources))


def fetch_node_postgres() -> None:
    sources = [SOURCES / "node" / name for name in ("package.json", "package-lock.json")]
    if is_current("node", sources) or shutil.which("npm") is None:
        return
    say("fetching node-postgres")
    folder = BUILD / "node"
    folder.mkdir(exist_ok=True)
    for source in sources:
        shutil.copy(source, folder)
    if tried("fetching node-postgres", ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder):
        (BUILD / "node.stamp").write_text(digest_of(sources))


def main() -> int:
    BUILD.mkdir(parents=True, exist_ok=True)

    install(
        {
            "golang-go": shutil.which("go") is not None,
            "nodejs": shutil.which("node") is not None,
            "npm": shutil.which("npm") is not None,
            "libpostgresql-jdbc-java": JAR.exists(),
        }
    )
    build_pgx()
    fetch_node_postgres()
    return 0


if __name__ == "__main__":
    sys.exit(main())
