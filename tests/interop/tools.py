"""Apache's own tools on a metadata address: the shell's commands, and the auto-recovery daemon."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

from tests.interop.bookies import APACHE_SETTINGS, LOGS, START_LIMIT_S, free_port, write_configuration
from tests.interop.driver import NEWEST, java_command

SHELL = "org.apache.bookkeeper.bookie.BookieShell"
AUTORECOVERY = "org.apache.bookkeeper.replication.AutoRecoveryMain"

LOGGING = """\
status=error
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%p %c{1} %m %X%n
rootLogger.level=error
rootLogger.appenderRef.console.ref=console
logger.shell.name=org.apache.bookkeeper.bookie.BookieShell
logger.shell.level=info
logger.tools.name=org.apache.bookkeeper.tools
logger.tools.level=info
"""
"""The shell prints its answers as log lines with their values in the context (%X)."""


class Shell:
    """``bookkeeper shell`` of the newest release. One call takes about a second and a half."""

    def __init__(self, uri: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._configuration, self._logging = folder / "shell.conf", folder / "shell-log.properties"
        write_configuration(self._configuration, {**APACHE_SETTINGS, "metadataServiceUri": uri})
        self._logging.write_text(LOGGING)

    def __call__(self, *arguments: str) -> str:
        """The output of a command; raises AssertionError if it fails."""
        options = ("-Xmx128m", f"-Dlog4j2.configurationFile={self._logging}")
        java = [*java_command(NEWEST, *options), SHELL, "-conf", str(self._configuration), *arguments]
        answer = subprocess.run(
            java, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=START_LIMIT_S, check=False
        )
        assert answer.returncode == 0, answer.stdout
        return answer.stdout

    def found(self, name: str, *arguments: str) -> list[str]:
        """The values of a name in the context of a command's lines."""
        return re.findall(rf"[{{ ]{name}=([^,}}\n]*)", self(*arguments))


class AutoRecovery:
    """Apache's auditor and replication worker as one process. Use it as a context manager."""

    def __init__(self, uri: str, folder: Path, *, release: str = NEWEST, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        configuration = folder / "autorecovery.conf"
        # Its name in votes is an address, as a bookie's is by default.
        self.bookie_id = f"127.0.0.1:{free_port()}"
        known = {**APACHE_SETTINGS, "metadataServiceUri": uri, "bookiePort": self.bookie_id.partition(":")[2], **settings}
        write_configuration(configuration, known)
        self._command = [*java_command(release, "-Xmx192m"), AUTORECOVERY, "--conf", str(configuration)]
        self.log = LOGS / f"autorecovery-{release}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> AutoRecovery:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
