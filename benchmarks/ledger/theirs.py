"""Apache's side: jars from Maven Central, ZooKeeper, bookies and client, with default settings and with those advised for speed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.ledger.ours import Ours
from benchmarks.ledger.processes import BUILD, ROOT, START_LIMIT_S, CaseFailed, Process, Side, free_port, wait_for_port
from scripts.interop import digest_of, install_programs, is_current, set_current, tried
from triplicate.cli.supervision.zookeeper_process import configuration, find_java

RELEASE = "4.18.0"
PROJECT = ROOT / "benchmarks" / "apache"
JARS = BUILD / "apache-jars"
CLASSES = BUILD / "apache-classes"

SHARED_SETTINGS: dict[str, object] = {
    "allowLoopback": True,
    "advertisedAddress": "127.0.0.1",
    "listeningInterface": "lo",
    "httpServerEnabled": False,
    "autoRecoveryDaemonEnabled": False,
    "statsProviderClass": "org.apache.bookkeeper.stats.NullStatsProvider",
    "extraServerComponents": "",
    "diskUsageThreshold": 0.99,
    "diskUsageWarnThreshold": 0.98,
    "diskUsageLwmThreshold": 0.99,
}
"""Settings that three bookies on one machine need, without metrics and auto-recovery. All others are defaults; docs/performance.md lists
every difference."""

ADVISED_SETTINGS: dict[str, object] = {"ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage"}

CLIENT_SETTINGS: dict[str, object] = {"throttle": 0}
"""The client's default limit is 5,000 entries per second and ledger, which would make any comparison of rates meaningless."""

COLLECTOR = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=10")
NETTY = (
    "-Dio.netty.leakDetectionLevel=disabled",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.util.zip=ALL-UNNAMED",
    "-Djava.net.preferIPv4Stack=true",
)
BOOKIE_OPTIONS = (
    "-Xms1g",
    "-Xmx1g",
    "-XX:MaxDirectMemorySize=2g",
    *COLLECTOR,
    "-XX:+ParallelRefProcEnabled",
    "-XX:+DisableExplicitGC",
    *NETTY,
)
"""Options of ``bin/common.sh``, without its log of garbage collections."""
CLIENT_OPTIONS = ("-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=1g", *COLLECTOR, *NETTY)


def java_command(*options: str) -> list[str]:
    logging = f"-Dlog4j2.configurationFile={PROJECT / 'log4j2.properties'}"
    return [find_java(), *options, logging, "-cp", f"{CLASSES}:{JARS}/*"]


def client_command() -> list[str]:
    return [*java_command(*CLIENT_OPTIONS), "bench.Main"]


def install() -> None:
    """Download the jars and build the client's program, unless both are current."""
    BUILD.mkdir(parents=True, exist_ok=True)
    install_programs()
    pom = PROJECT / "pom.xml"
    wanted = digest_of([pom])
    if not is_current(JARS, wanted):
        maven = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "-f", str(pom), "dependency:copy-dependencies"]
        if not tried(f"the download of Apache BookKeeper {RELEASE}", [*maven, "-DincludeScope=runtime", f"-DoutputDirectory={JARS}"]):
            raise SystemExit(f"Apache BookKeeper {RELEASE} cannot be fetched")
        set_current(JARS, wanted)
    sources = sorted((PROJECT / "src").rglob("*.java"))
    wanted = digest_of([pom, *sources])
    if not is_current(CLASSES, wanted):
        CLASSES.mkdir(exist_ok=True)
        subprocess.run(["javac", "--release", "17", "-nowarn", "-d", str(CLASSES), "-cp", f"{JARS}/*", *map(str, sources)], check=True)
        set_current(CLASSES, wanted)


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    lines = [f"{name}={str(value).lower() if isinstance(value, bool) else value}\n" for name, value in settings.items()]
    path.write_text("".join(lines), encoding="utf-8")


class ZooKeeper(Process):
    """One ZooKeeper server for the whole run, with syncs. All sides share it; it is idle while they append and read."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        path = folder / "zoo.cfg"
        path.write_text(configuration(folder / "data", self.port, maxSessionTimeout=60_000), encoding="utf-8")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        super().__init__("zookeeper", [*java_command("-Xmx256m", *NETTY), main, str(path)], BUILD / "logs" / "zookeeper.log")

    def wait(self) -> str:
        """Its address; waits until it serves."""
        wait_for_port(self.port, self)
        return f"127.0.0.1:{self.port}"


class Apache(Side):
    """Three of their bookies and their client."""

    bookie_settings: Mapping[str, object] = {}
    wire_v2 = False

    def initialise(self) -> None:
        configuration_path = self.folder / "shell.conf"
        write_settings(configuration_path, {"metadataServiceUri": self.uri})
        shell = [*java_command("-Xmx128m", *NETTY), "org.apache.bookkeeper.bookie.BookieShell", "-conf", str(configuration_path)]
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / "initnewcluster.log").open("ab") as log:
            done = subprocess.run(
                [*shell, "initnewcluster"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=START_LIMIT_S, check=False
            )
        if done.returncode:
            raise CaseFailed(f"the cluster cannot be made; see {self.logs / 'initnewcluster.log'}")

    def bookie_command(self, name: str, folder: Path, port: int) -> list[str]:
        directories = {"journalDirectories": folder / "journal", "ledgerDirectories": folder / "ledgers"}
        path = folder / "bookie.conf"
        place = {"bookiePort": port, "metadataServiceUri": self.uri, **directories}
        write_settings(path, {**SHARED_SETTINGS, **self.bookie_settings, **place})
        temporary = f"-Djava.io.tmpdir={folder}"
        return [*java_command(*BOOKIE_OPTIONS, temporary), "org.apache.bookkeeper.server.Main", "--conf", str(path)]

    def client_command(self) -> list[str]:
        return client_command()

    def client_settings(self, *, explicit_lac_ms: int = 0) -> Mapping[str, object]:
        # Version 2 has neither explicit last-add-confirmed nor long polls.
        wire_v2 = self.wire_v2 and not explicit_lac_ms
        return {**CLIENT_SETTINGS, "useV2WireProtocol": wire_v2, "explicitLacInterval": explicit_lac_ms}


class Shipped(Apache):
    name = "apache_shipped"
    reads_batches = False


class Advised(Apache):
    name = "apache_advised"
    bookie_settings = ADVISED_SETTINGS
    wire_v2 = True


class Crossed(Ours):
    """Their client, over version 2, on our bookies."""

    name = "crossed"

    def client_command(self) -> list[str]:
        return client_command()

    def client_settings(self, *, explicit_lac_ms: int = 0) -> Mapping[str, object]:
        return {**CLIENT_SETTINGS, "useV2WireProtocol": not explicit_lac_ms, "explicitLacInterval": explicit_lac_ms}


def settings(side: type[Apache]) -> dict[str, object]:
    """Settings for the report."""
    return {
        "release": RELEASE,
        "bookie": {**SHARED_SETTINGS, **side.bookie_settings},
        "bookie_java": " ".join(BOOKIE_OPTIONS),
        "client": {**CLIENT_SETTINGS, "useV2WireProtocol": side.wire_v2},
        "client_java": " ".join(CLIENT_OPTIONS),
    }
