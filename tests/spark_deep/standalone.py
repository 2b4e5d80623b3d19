"""Spark's standalone mode on loopback: a master and workers of the installed PySpark, each a process that the test ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyspark

READY_WITHIN_S = 90.0
_PACKAGE = "org.apache.spark.deploy"
EXECUTOR = "CoarseGrainedExecutorBackend"
PYTHON_WORKER = "pyspark.daemon"


class Standalone:
    """A running master with its workers.

    Args:
        python_path: where executors find modules; None for this process's path.

    Attributes:
        url: for ``spark.master``.
    """

    def __init__(self, folder: Path, python_path: str | None = None) -> None:
        self._folder = folder
        self._python_path = os.pathsep.join(path for path in sys.path if path) if python_path is None else python_path
        self._processes: list[subprocess.Popen[bytes]] = []
        self._master_port, self._page_port = _free_port(), _free_port()
        self.url = f"spark://127.0.0.1:{self._master_port}"

    def start(self, workers: int) -> None:
        named = ["--host", "127.0.0.1", "--port", str(self._master_port), "--webui-port", str(self._page_port)]
        self._launch("master", f"{_PACKAGE}.master.Master", *named)
        self._wait(lambda page: page["status"] == "ALIVE")
        for number in range(workers):
            folder = self._folder / f"worker-{number}"
            named = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(folder)]
            self._launch(f"worker-{number}", f"{_PACKAGE}.worker.Worker", *named, self.url)
        self._wait(lambda page: page["aliveworkers"] == workers)

    def stop(self) -> None:
        """End master, workers, and what the workers have started."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def victims(self, of: str) -> list[psutil.Process]:
        """Processes of the workers' sessions whose command line holds a text: `EXECUTOR` or `PYTHON_WORKER`.

        Python workers outlive the killed process that has made them, go on with tasks, and are nobody's children here.
        """
        sessions, found = {process.pid for process in self._processes[1:]}, []
        for candidate in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError):  # It has ended meanwhile.
                if os.getsid(candidate.pid) in sessions and any(of in word for word in candidate.cmdline()):
                    found.append(candidate)
        return found

    def _launch(self, name: str, main_class: str, *arguments: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        java = shutil.which("java")
        assert java is not None, "Spark needs Java"
        home = Path(pyspark.__file__).parent
        (core,) = (home / "jars").glob("spark-core_*.jar")
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(home),
            # Workers read it when they build an executor's command.
            "SPARK_SCALA_VERSION": core.name.split("_")[1].split("-")[0],
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": self._python_path,
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [java, "-Xmx256m", "-XX:+UseSerialGC", "-cp", str(home / "jars" / "*"), main_class, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)

    def _wait(self, is_ready: Any) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            ended = [process.args for process in self._processes if process.poll() is not None]
            assert not ended, f"a process of Spark ended; its log is in {self._folder}: {ended}"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._page_port}/json/", timeout=5) as answer:
                    if is_ready(json.load(answer)):
                        return
            except OSError:
                pass  # It does not listen yet.
            time.sleep(0.2)
        raise AssertionError(f"Spark's master and workers were not ready within {READY_WITHIN_S} s; their logs are in {self._folder}")


@contextmanager
def standalone(folder: Path, workers: int, python_path: str | None = None) -> Iterator[Standalone]:
    """Run master and workers during a block."""
    made = Standalone(folder, python_path)
    try:
        made.start(workers)
        yield made
    finally:
        made.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
