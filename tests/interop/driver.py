"""BookKeeper's Java client under remote control: one process per release, one JSON line per command.

    with Driver("4.18.0", log) as driver:
        client = driver.connect(uri, wire="v2")
        ledger = client.create(digest_type=DigestType.CRC32C, password=b"secret")
        ledger.append(b"hello")
        ledger.close()

Every call waits at most `ANSWER_LIMIT_S`, or its own limit. Calls may come from several threads and run concurrently. A refusal of the
Java client is raised as `JavaError` with the code and the class of its exception. The Java half is in ``java/common``; `payload` gives the
bytes that it appends by itself.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from triplicate.ledger import DigestType, LedgerState

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "interop"
JAVA = Path(__file__).with_name("java")
NEWEST = "4.18.0"
OLDEST = "4.14.7"
ANSWER_LIMIT_S = 30.0
SMALL_MACHINE = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true"]
"""Options for a Java machine that starts fast, uses little of the two cores, and resolves ``lo`` to 127.0.0.1."""

DIGEST_NAMES = {DigestType.CRC32: "CRC32", DigestType.HMAC: "MAC", DigestType.CRC32C: "CRC32C", DigestType.DUMMY: "DUMMY"}

# Codes of `org.apache.bookkeeper.client.api.BKException`.
READ_FAILED = -1
DIGEST_MISMATCH = -5
NO_SUCH_LEDGER_ON_BOOKIE = -7
BOOKIE_NOT_AVAILABLE = -8
LEDGER_CLOSED = -11
NO_SUCH_ENTRY = -13
LEDGER_EXISTS = -20
DUPLICATE_ENTRY = -22
TIMEOUT = -23
NO_SUCH_LEDGER = -25
ILLEGAL_OPERATION = -100
FENCED = -101
UNAUTHORIZED = -102


class JavaError(Exception):
    """A refusal or failure of the Java client.

    `code` is that of BookKeeper's exception, 1 for any other exception; `name` is the class.
    """

    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(f"{name} ({code}): {message}")
        self.code = code
        self.name = name


@dataclass(frozen=True)
class SeenEntry:
    entry_id: int
    length: int
    """Payload bytes of the ledger up to and including this entry."""
    payload: bytes


@dataclass(frozen=True)
class LedgerFacts:
    """A ledger's metadata as a client reads it."""

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    state: LedgerState
    last_entry_id: int
    length: int
    digest_type: DigestType
    password: bytes
    custom: dict[str, bytes]
    segments: dict[int, tuple[str, ...]]
    """First entry of the segment → its ensemble."""
    ctime_ms: int
    format_version: int


@dataclass(frozen=True)
class LedgerView:
    """State of a handle, read without a request."""

    ledger_id: int
    last_add_confirmed: int
    length: int
    closed: bool
    last_add_pushed: int


class LongPollResult(NamedTuple):
    """Result of a long poll."""

    last_add_confirmed: int
    entry: SeenEntry | None


@dataclass(frozen=True)
class Outcome:
    """Result of several appends, in order: the ids of those that succeeded, and the errors of the others."""

    entry_ids: tuple[int | None, ...]
    errors: tuple[JavaError | None, ...]

    def acknowledged(self) -> list[int]:
        """All ids if every append succeeded; raises the first failure otherwise."""
        for error in self.errors:
            if error is not None:
                raise error
        return [entry_id for entry_id in self.entry_ids if entry_id is not None]


def payload(seed: int, index: int, size: int) -> bytes:
    """The payload that the driver makes for entry `index`, the same as ``Payload.of`` in Java."""
    start = seed * 101 + index * 31
    return bytes((start + position * 7) & 0xFF for position in range(size))


def class_path(release: str) -> str:
    """Jars, driver and logging configuration of a release; ``make interop`` installs them."""
    jars, classes = BUILD / f"lib-{release}", BUILD / f"classes-{release}"
    missing = [folder.name for folder in (jars, classes) if not folder.is_dir()]
    assert not missing, f"{missing} is not installed: run .venv/bin/python scripts/interop.py {release}"
    return f"{classes}:{jars}/*"


def java_command(release: str, *options: str) -> list[str]:
    """``java`` with a release's classes, errors and logs on standard error."""
    java = shutil.which("java")
    assert java is not None, "Java is missing: run `make setup`"
    logging = [f"-Dlog4j2.configurationFile={JAVA / 'log4j2.properties'}", f"-Dlog4j.configuration=file:{JAVA / 'log4j.properties'}"]
    return [java, *SMALL_MACHINE, *logging, *options, "-cp", class_path(release)]


class Driver:
    """One Java process with these options. `close` ends it in order, `kill` as a crash; both by its own id."""

    def __init__(self, release: str, log: Path, *options: str) -> None:
        self.release = release
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*java_command(release, "-Xmx256m", *options), "interop.Driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
            )
        self._log = log
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._next_id = 1
        self._reader = threading.Thread(target=self._read_answers, name=f"answers of Java {release}", daemon=True)
        self._reader.start()
        self.batch_reads: bool = self.ask("hello")["batch_reads"]

    def ask_later(self, command: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Send a command; the future has the answer, or a `JavaError`."""
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            number, self._next_id = self._next_id, self._next_id + 1
            self._waiting[number] = answer
            assert self.process.stdin is not None
            try:
                self.process.stdin.write(json.dumps({"id": number, "do": command, **arguments}) + "\n")
                self.process.stdin.flush()
            except (OSError, ValueError) as error:
                self._waiting.pop(number, None)
                raise JavaError(1, "DriverEnded", f"the Java driver has ended; see {self._log}") from error
        return answer

    def ask(self, command: str, *, within_s: float = ANSWER_LIMIT_S, **arguments: Any) -> dict[str, Any]:
        return self.ask_later(command, **arguments).result(timeout=within_s)

    def _read_answers(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            with self._lock:
                waiting = self._waiting.pop(answer["id"])
            if "error" in answer:
                waiting.set_exception(error_of(answer["error"]))
            else:
                waiting.set_result(answer["ok"])
        with self._lock:
            left, self._waiting = self._waiting, {}
        for waiting in left.values():
            waiting.set_exception(JavaError(1, "DriverEnded", f"the Java driver has ended; see {self._log}"))

    def connect(self, uri: str, *, wire: str, settings: Mapping[str, object] | None = None) -> JavaClient:
        """Make a client of the cluster at `uri`, which speaks `wire` (``v2`` or ``v3``); `settings` as in BookKeeper's configuration."""
        return JavaClient(self, self.ask("connect", uri=uri, wire=wire, settings=texts_of(settings or {}))["client"])

    def start_auditor(self, uri: str, bookie_id: str, settings: Mapping[str, object]) -> JavaDaemon:
        """Let an auditor vote with this id. It audits when it is elected."""
        return JavaDaemon(self, self.ask("start_auditor", uri=uri, bookie_id=bookie_id, settings=texts_of(settings))["daemon"])

    def start_worker(self, uri: str, settings: Mapping[str, object]) -> JavaDaemon:
        """Start a replication worker."""
        return JavaDaemon(self, self.ask("start_worker", uri=uri, settings=texts_of(settings))["daemon"])

    def pause(self) -> None:
        """Stop the process (SIGSTOP) with its requests in flight."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self._ended()

    def close(self) -> None:
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._ended()

    def _ended(self) -> None:
        self.process.wait()
        self._reader.join(timeout=5)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class JavaClient:
    """One Java client of a cluster."""

    def __init__(self, driver: Driver, number: int) -> None:
        self.driver = driver
        self._number = number

    def create(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] | None = None,
        adv: bool = False,
        ledger_id: int | None = None,
        deferred_sync: bool = False,
    ) -> JavaLedger:
        """Create a ledger. `adv`: the caller chooses the entry ids. Only such a ledger may be given a `ledger_id`."""
        answer = self.driver.ask(
            "create",
            client=self._number,
            ensemble_size=ensemble_size,
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            digest=DIGEST_NAMES[digest_type],
            password=text(password),
            custom={name: text(value) for name, value in (custom or {}).items()},
            adv=adv,
            ledger_id=ledger_id,
            deferred_sync=deferred_sync,
        )
        return JavaLedger(self.driver, answer["handle"], answer["ledger_id"], adv=adv)

    def open(
        self, ledger_id: int, *, digest_type: DigestType = DigestType.CRC32C, password: bytes = b"", recovery: bool = False
    ) -> JavaLedger:
        """Open a ledger for reading; with `recovery` it is fenced and closed first."""
        answer = self.driver.ask(
            "open", client=self._number, ledger_id=ledger_id, digest=DIGEST_NAMES[digest_type], password=text(password), recovery=recovery
        )
        return JavaLedger(self.driver, answer["handle"], ledger_id)

    def delete(self, ledger_id: int) -> None:
        self.driver.ask("delete", client=self._number, ledger_id=ledger_id)

    def ledger_ids(self) -> list[int]:
        """Ids of all ledgers, in the order of the listing."""
        return list(self.driver.ask("list", client=self._number)["ledger_ids"])

    def metadata_of(self, ledger_id: int) -> LedgerFacts:
        return metadata_from(self.driver.ask("metadata", client=self._number, ledger_id=ledger_id))

    def bookie_info(self) -> dict[str, tuple[int, int]]:
        """Bookie → total and free bytes of its disks."""
        found = self.driver.ask("bookie_info", client=self._number)
        return {name: (info["total_bytes"], info["free_bytes"]) for name, info in found.items()}

    def entries_on(self, bookie_id: str, ledger_id: int, last: int) -> tuple[int, list[int]]:
        """One bookie's list of entries of a ledger: their number, and the ids up to `last`."""
        found = self.driver.ask("list_entries", client=self._number, bookie=bookie_id, ledger_id=ledger_id, last=last)
        return int(found["count"]), list(found["entry_ids"])

    def expire_session(self, servers: str) -> int:
        """End the client's ZooKeeper session from outside; returns its number."""
        return int(self.driver.ask("expire_session", client=self._number, servers=servers)["session"])

    def close(self) -> None:
        """Close the client. Ledgers that it writes stay open until a recovery."""
        self.driver.ask("disconnect", client=self._number)


class JavaDaemon:
    """An auditor or a replication worker of Apache's inside a driver. `stop` ends it in order; `Driver.kill` as a crash."""

    def __init__(self, driver: Driver, number: int) -> None:
        self._driver = driver
        self._number = number

    def stop(self) -> None:
        """End it; a vote and locks are released."""
        self._driver.ask("stop_daemon", daemon=self._number)


class PendingAppends:
    """Appends in flight."""

    def __init__(self, driver: Driver, number: int) -> None:
        self._driver = driver
        self._number = number

    def outcome(self, within_s: float = ANSWER_LIMIT_S) -> Outcome:
        """Wait until each has succeeded or failed. May be called once."""
        return outcome_from(self._driver.ask("outcome", pending=self._number, within_s=within_s))


class JavaLedger:
    """A handle of a ledger, for reading or writing."""

    def __init__(self, driver: Driver, number: int, ledger_id: int, *, adv: bool = False) -> None:
        self.driver = driver
        self.ledger_id = ledger_id
        self._number = number
        self._adv = adv

    def _ask(self, command: str, *, within_s: float = ANSWER_LIMIT_S, **arguments: Any) -> dict[str, Any]:
        return self.driver.ask(command, handle=self._number, within_s=within_s, **arguments)

    def append(self, value: bytes, entry_id: int | None = None) -> int:
        """Append one entry and wait for it; `entry_id` for a ledger whose ids the caller chooses."""
        return int(self._ask("append", payload=text(value), entry_id=entry_id)["entry_id"])

    def append_later(self, value: bytes, entry_id: int | None = None) -> Future[dict[str, Any]]:
        """`append` without waiting for it."""
        return self.driver.ask_later("append", handle=self._number, payload=text(value), entry_id=entry_id)

    def append_many(self, count: int, *, first: int = 0, size: int = 100, seed: int = 0) -> Outcome:
        """Append ``payload(seed, first + i, size)`` for each i below `count` concurrently, then wait for all."""
        return outcome_from(self._ask("append_many", first=first, count=count, size=size, seed=seed, adv=self._adv, wait=True))

    def append_many_later(self, count: int, *, first: int = 0, size: int = 100, seed: int = 0) -> PendingAppends:
        """`append_many` without waiting."""
        answer = self._ask("append_many", first=first, count=count, size=size, seed=seed, adv=self._adv, wait=False)
        return PendingAppends(self.driver, answer["pending"])

    def force(self) -> LedgerView:
        return view_from(self._ask("force"))

    def state(self) -> LedgerView:
        return view_from(self._ask("state"))

    def read(self, first: int, last: int) -> list[SeenEntry]:
        return entries_from(self._ask("read", first=first, last=last))

    def read_unconfirmed(self, first: int, last: int) -> list[SeenEntry]:
        return entries_from(self._ask("read_unconfirmed", first=first, last=last))

    def read_batch(self, first: int, max_count: int, max_bytes: int = 0, *, unconfirmed: bool = False) -> list[SeenEntry]:
        return entries_from(self._ask("batch_read", first=first, max_count=max_count, max_bytes=max_bytes, unconfirmed=unconfirmed))

    def read_last_confirmed(self, kind: str = "quorum") -> int:
        """`kind` is ``quorum``, ``try`` or ``explicit``."""
        return int(self._ask("read_last_confirmed", kind=kind)["last_add_confirmed"])

    def wait_for_entry(self, entry_id: int, timeout_s: float, *, parallel: bool = False) -> LongPollResult:
        """One long poll (`readLastAddConfirmedAndEntry`)."""
        answer = self._ask("wait_for_entry", entry_id=entry_id, timeout_ms=int(timeout_s * 1000), parallel=parallel)
        return LongPollResult(answer["last_add_confirmed"], next(iter(entries_from(answer)), None))

    def tail_later(self, first: int, last: int, *, poll_s: float = 1.0, within_s: float = 15.0) -> Future[dict[str, Any]]:
        """Follow the ledger by long polls from `first` to `last`, or to its end; `entries_from` of the answer has the entries."""
        limits = {"timeout_ms": int(poll_s * 1000), "within_ms": int(within_s * 1000)}
        return self.driver.ask_later("tail", handle=self._number, first=first, last=last, **limits)

    def close(self) -> None:
        """Close the handle; a writer closes its ledger."""
        self._ask("close")


def texts_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as in BookKeeper's configuration files."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def error_of(answer: Mapping[str, Any]) -> JavaError:
    return JavaError(answer["code"], answer["name"], answer["message"])


def entries_from(answer: Mapping[str, Any]) -> list[SeenEntry]:
    found: Iterable[Mapping[str, Any]] = answer["entries"]
    return [SeenEntry(one["entry_id"], one["length"], base64.b64decode(one["payload"])) for one in found]


def outcome_from(answer: Mapping[str, Any]) -> Outcome:
    errors = tuple(None if one is None else error_of(one) for one in answer["errors"])
    return Outcome(tuple(answer["entry_ids"]), errors)


def view_from(answer: Mapping[str, Any]) -> LedgerView:
    names = ("ledger_id", "last_add_confirmed", "length", "closed", "last_add_pushed")
    return LedgerView(*(answer.get(name, -1) for name in names))


def metadata_from(answer: Mapping[str, Any]) -> LedgerFacts:
    digests = {name: digest_type for digest_type, name in DIGEST_NAMES.items()}
    return LedgerFacts(
        ensemble_size=answer["ensemble_size"],
        write_quorum=answer["write_quorum"],
        ack_quorum=answer["ack_quorum"],
        state=LedgerState[answer["state"]],
        last_entry_id=answer["last_entry_id"],
        length=answer["length"],
        digest_type=digests[answer["digest"]],
        password=base64.b64decode(answer["password"]),
        custom={name: base64.b64decode(value) for name, value in answer["custom"].items()},
        segments={int(first): tuple(ensemble) for first, ensemble in answer["segments"].items()},
        ctime_ms=answer["ctime_ms"],
        format_version=answer["format_version"],
    )
