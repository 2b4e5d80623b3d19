"""A Spark session with the settings that the sources need. It writes only into its run folder."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from triplicate.errors import ConfigError, EnvironmentFault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOCKET_FOLDER_LIMIT_BYTES = 60
"""Socket paths are limited to about 100 bytes, and Spark's socket names use 40 of them."""
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def settings_for(run_folder: Path, socket_folder: Path, cores: int) -> dict[str, str]:
    """Spark's settings for a local session with its files in `run_folder` and its sockets in `socket_folder`."""
    return {
        # local[N] allows one attempt per task, but a task that loses its bookie must be retried.
        "spark.master": f"local[{cores},3]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Over loopback TCP every Python task waits about 40 ms for a delayed acknowledgement.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(socket_folder),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.warehouse.dir": str(run_folder / "warehouse"),
        "spark.local.dir": str(run_folder / "local"),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join(
            (f"-Djava.io.tmpdir={run_folder / 'tmp'}", "-Duser.timezone=UTC", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        ),
    }


def session(
    application: str, *, run_folder: str | Path | None = None, cores: int | None = None, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a session in which the formats ``triplicate``, ``triplicate-changes`` and ``triplicate-table`` work.

    If the process already has a session, that one is returned with its settings: a process has one JVM.

    Args:
        application: name of the application.
        run_folder: folder of Spark's files and its log (``spark.log``); None for a temporary folder, which is removed at the end of the
            process.
        cores: number of concurrent tasks; None for the machine's cores.
        extra: further settings of Spark, which override the others.

    Raises:
        ConfigError: PySpark is not installed. EnvironmentFault: Java is missing or did not start. The message names the log.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ConfigError("pipelines need PySpark: pip install 'triplicate[spark]'") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        register(active)
        return active
    folder = _passing_folder("triplicate-spark-") if run_folder is None else Path(run_folder).absolute()
    sockets = folder / "s"
    if len(os.fsencode(sockets)) > SOCKET_FOLDER_LIMIT_BYTES:
        sockets = _passing_folder(f"tri-{os.getpid()}-")
    for path in (sockets, *(folder / name for name in ("tmp", "local", "warehouse"))):
        path.mkdir(parents=True, exist_ok=True)
    log = folder / "spark.log"
    # By default workers use the python3 on the PATH.
    os.environ["PYSPARK_PYTHON"] = interpreter(folder)
    builder = SparkSession.builder.appName(application)
    for key, value in {**settings_for(folder, sockets, cores or os.cpu_count() or 2), **(extra or {})}.items():
        builder = builder.config(key, value)
    try:
        with _environment({"SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"}), _quiet(log):
            spark = builder.getOrCreate()
    except Exception as error:
        raise EnvironmentFault(f"Spark did not start: {error}; is Java 17 or later installed? Its output is in {log}") from error
    # A failed query raises an exception. This logger would print the same with the JVM's stack on the terminal.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    register(spark)
    return spark


def interpreter(folder: Path) -> str:
    """The command with which Spark starts Python processes: this interpreter, with the installed PySpark.

    Spark puts an archive of PySpark's sources first on their path, and Python compiles modules of an archive at each start: more than half
    of a process's start. Spark gives up on the process of a stream that has not started within ten seconds.

    Args:
        folder: location of the command. If files there cannot be executed, the plain interpreter is returned.
    """
    packages, command = folder / "packages", folder / "python"
    packages.mkdir(parents=True, exist_ok=True)
    for name in ("pyspark", "py4j"):
        found = importlib.util.find_spec(name)
        assert found is not None, "a session needs PySpark"
        assert found.origin is not None, "a package has a file"
        link = packages / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(found.origin).parent)
    path = f"PYTHONPATH={shlex.quote(str(packages))}${{PYTHONPATH:+:$PYTHONPATH}}"
    command.write_text(f'#!/bin/sh\n{path} exec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return str(command) if os.access(command, os.X_OK) else sys.executable


def register(spark: SparkSession) -> None:
    """Register the formats with an existing session. Needed only if the modules ``pyspark_triplicate*`` cannot be found."""
    from triplicate.spark.change_feed.change_source import ChangesDataSource
    from triplicate.spark.logs.log_source import TriplicateDataSource
    from triplicate.spark.tables.table_source import TableDataSource

    for source in (TriplicateDataSource, ChangesDataSource, TableDataSource):
        spark.dataSource.register(source)


def _passing_folder(prefix: str) -> Path:
    """A new temporary folder, removed at the end of the process, after Spark's end."""
    folder = tempfile.mkdtemp(prefix=prefix)
    atexit.register(_stop_and_remove, folder)
    return Path(folder)


def _stop_and_remove(folder: str) -> None:
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes started in the block: the JVM, and through it every worker."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """Redirect the JVM's output to a file: it inherits this process's descriptors 1 and 2 at its start, and keeps them."""
    sys.stdout.flush()
    sys.stderr.flush()
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in kept:
            os.dup2(target, number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(target)
