"""Kafka's side: three brokers of one release, which are controllers too, with the settings that they have as shipped."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from benchmarks.ledger.processes import BUILD, START_LIMIT_S, CaseFailed, Process, free_port, wait_for_port
from scripts.interop import ROOT, digest_of, install_programs, is_current, set_current, tried
from triplicate.cli.supervision.zookeeper_process import find_java

RELEASE = "4.3.1"
CONNECTOR = "4.2.0"
"""The newest release of Spark with a connector for Kafka in Maven Central."""
PACKAGES = {
    "kafka": ("org.apache.kafka", "kafka_2.13", RELEASE),
    "connector": ("org.apache.spark", "spark-sql-kafka-0-10_2.13", CONNECTOR),
    "postgresql": ("org.postgresql", "postgresql", "42.7.4"),
}
POM = ROOT / "benchmarks" / "spark" / "pom.xml"
HEAP = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
"""Options of ``bin/kafka-server-start.sh``."""
BROKERS = 3
STOP_LIMIT_S = 30.0


def jars(name: str) -> Path:
    """The folder of a package's jars with what it needs, fetched by Maven at the first use.

    Raises:
        CaseFailed: it cannot be fetched.
    """
    install_programs()
    folder, (group, artifact, release) = BUILD / f"spark-{name}-jars", PACKAGES[name]
    wanted = digest_of([POM]) + release
    if not is_current(folder, wanted):
        shutil.rmtree(folder, ignore_errors=True)
        maven = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "-f", str(POM), "dependency:copy-dependencies"]
        maven += [f"-Dgroup={group}", f"-Dartifact={artifact}", f"-Drelease={release}"]
        if not tried(f"the download of {artifact} {release}", [*maven, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]):
            raise CaseFailed(f"{artifact} {release} cannot be fetched")
        set_current(folder, wanted)
    return folder


class Brokers:
    """A cluster of Kafka on loopback. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[Process] = []
        self._ports = [(free_port(), free_port()) for _ in range(BROKERS)]
        self.servers = ",".join(f"127.0.0.1:{port}" for port, _ in self._ports)

    def __enter__(self) -> Brokers:
        java = [find_java(), *HEAP, "-cp", f"{jars('kafka')}/*"]
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        try:
            for number, (port, _) in enumerate(self._ports, 1):
                settings = self._folder / f"broker-{number}.properties"
                settings.parent.mkdir(parents=True, exist_ok=True)
                settings.write_text(self._settings(number, port), encoding="utf-8")
                made = subprocess.run(
                    [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=START_LIMIT_S,
                    check=False,
                )
                if made.returncode:
                    raise CaseFailed(f"broker {number} cannot be made: {(made.stdout + made.stderr).strip()[-300:]}")
                log = BUILD / "logs" / "spark" / f"broker-{number}.log"
                self._processes.append(Process(f"broker-{number}", [*java, "kafka.Kafka", str(settings)], log))
            for process, (port, _) in zip(self._processes, self._ports, strict=True):
                wait_for_port(port, process)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()

    def _settings(self, number: int, port: int) -> str:
        controller = self._ports[number - 1][1]
        voters = ",".join(f"{each}@127.0.0.1:{place}" for each, (_, place) in enumerate(self._ports, 1))
        return (
            f"process.roles=broker,controller\nnode.id={number}\ncontroller.quorum.voters={voters}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self._folder / f'broker-{number}'}\n"
            f"default.replication.factor={BROKERS}\nmin.insync.replicas=2\n"
            f"offsets.topic.replication.factor={BROKERS}\ntransaction.state.log.replication.factor={BROKERS}\n"
        )
