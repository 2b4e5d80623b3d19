"""Install the requirements of `make interop`: Maven and a JDK, Apache BookKeeper's jars per release, and the Java driver for each.

Usage: interop.py [RELEASE ...]   (the newest release when none is named)

The results are in ``build/interop``: the jars in ``lib-RELEASE/``, the driver in ``classes-RELEASE/``. Both are rebuilt when their sources
change. A download is tried three times.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JAVA = ROOT / "tests" / "interop" / "java"
BUILD = ROOT / "build" / "interop"
NEWEST = "4.18.0"
TRIES = 3
DOWNLOAD_LIMIT_S = 600
PROGRAMS = {"mvn": "maven", "javac": "openjdk-17-jdk-headless"}
"""Program → its Debian package."""


def say(text: str) -> None:
    print(f"interop: {text}", flush=True)


def stop(text: str) -> None:
    print(f"interop: {text}", file=sys.stderr)
    sys.exit(1)


def tried(what: str, command: list[str], tries: int = TRIES) -> bool:
    """Run a command that downloads; retry it if it fails."""
    for attempt in range(1, tries + 1):
        try:
            answer = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DOWNLOAD_LIMIT_S, check=False
            )
            if answer.returncode == 0:
                return True
            tail = "\n".join((answer.stdout + answer.stderr).strip().splitlines()[-15:])
        except subprocess.TimeoutExpired:
            tail = f"no end within {DOWNLOAD_LIMIT_S} s"
        say(f"{what} failed, try {attempt} of {tries}:\n{tail}")
        time.sleep(2 * attempt)
    return False


def install_programs() -> None:
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if not missing:
        return
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        stop(f"{' and '.join(missing)} are missing: install them and run make interop again")
    say(f"installing {' '.join(missing)}")
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    if not tried("renewing the package lists", ["apt-get", "update", "-qq"]):
        say("going on with the old package lists")
    if not tried("the installation", ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]):
        stop(f"{' '.join(missing)} cannot be installed")


def digest_of(paths: list[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def is_current(folder: Path, wanted: str) -> bool:
    stamp = folder.with_suffix(folder.suffix + ".stamp")
    return folder.is_dir() and stamp.exists() and stamp.read_text() == wanted


def set_current(folder: Path, wanted: str) -> None:
    folder.with_suffix(folder.suffix + ".stamp").write_text(wanted)


def fetch_jars(release: str) -> Path:
    pom = JAVA / release / "pom.xml"
    if not pom.exists():
        stop(f"no release {release!r}; there are: {', '.join(sorted(path.parent.name for path in JAVA.glob('*/pom.xml')))}")
    folder = BUILD / f"lib-{release}"
    wanted = digest_of([pom])
    if is_current(folder, wanted):
        return folder
    say(f"fetching Apache BookKeeper {release}")
    shutil.rmtree(folder, ignore_errors=True)
    # -U retries a release whose download failed before.
    maven = ["mvn", "--batch-mode", "--quiet", "-U", "--no-transfer-progress", "-f", str(pom), "dependency:copy-dependencies"]
    if not tried("the download", [*maven, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]):
        stop(f"Apache BookKeeper {release} cannot be fetched")
    set_current(folder, wanted)
    return folder


def build_driver(release: str, jars: Path) -> None:
    sources = sorted([*JAVA.glob("common/interop/*.java"), *JAVA.glob(f"{release}/interop/*.java")])
    folder = BUILD / f"classes-{release}"
    wanted = digest_of([JAVA / release / "pom.xml", *sources])
    if is_current(folder, wanted):
        return
    say(f"building the driver for {release}")
    fresh = BUILD / f"classes-{release}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    subprocess.run(["javac", "--release", "17", "-nowarn", "-d", str(fresh), "-cp", f"{jars}/*", *map(str, sources)], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    set_current(folder, wanted)


def main(releases: list[str]) -> int:
    started = time.monotonic()
    BUILD.mkdir(parents=True, exist_ok=True)
    install_programs()
    for release in releases or [NEWEST]:
        build_driver(release, fetch_jars(release))
    say(f"installed in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
