"""A Spark session with every setting that the sources need, and nothing left outside its run folder."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from triplicate.errors import ConfigError, EnvironmentFault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def settings_for(run_folder: Path, cores: int) -> dict[str, str]:
    """Spark's settings for a local session whose files all lie in `run_folder`."""
    return {
        # local[N] gives a task one attempt only; a task that loses its bookie must be tried again.
        "spark.master": f"local[{cores},3]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Over loopback TCP every Python task waits some 40 ms for a delayed acknowledgement.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(run_folder / "s"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.warehouse.dir": str(run_folder / "warehouse"),
        "spark.local.dir": str(run_folder / "local"),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={run_folder / 'tmp'} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }


def session(
    application: str, *, run_folder: Path | None = None, cores: int | None = None, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """Start (or get) a session in which ``format("triplicate")`` and ``format("triplicate-changes")`` work.

    Args:
        application: its name.
        run_folder: where Spark keeps its files and its log (``spark.log``); a new temporary folder where none is given.
        cores: how many tasks run at once; all of the machine's where none is given.
        extra: further settings of Spark; they win.

    Raises:
        ConfigError: PySpark is not installed. EnvironmentFault: Java is missing or did not start; the log is named.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ConfigError("pipelines need PySpark: pip install 'triplicate[spark]'") from None
    folder = run_folder or Path(tempfile.mkdtemp(prefix="triplicate-spark-"))
    for name in ("s", "tmp", "local", "warehouse"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    settings = {**settings_for(folder, cores or os.cpu_count() or 2), **(extra or {})}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["TZ"] = "UTC"
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "")
    builder = SparkSession.builder.appName(application)
    for key, value in settings.items():
        builder = builder.config(key, value)
    log = folder / "spark.log"
    try:
        with _quiet(log):
            spark = builder.getOrCreate()
    except Exception as error:
        raise EnvironmentFault(f"Spark did not start: {error}; is Java 17 installed? What it said is in {log}") from error
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Make both formats known to a session of your own."""
    from triplicate.spark.changes import ChangesDataSource
    from triplicate.spark.source import TriplicateDataSource

    spark.dataSource.register(TriplicateDataSource)
    spark.dataSource.register(ChangesDataSource)


@contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """Send what the JVM prints to a file: it inherits our descriptors 1 and 2 when it starts, and keeps them."""
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
