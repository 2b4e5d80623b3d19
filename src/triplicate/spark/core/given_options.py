"""Options of the data sources: parsed once, checked, and named in every error. Pure.

Spark passes options as text with keys in lower case; the names here are in the users' spelling.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from triplicate.errors import ConfigError
from triplicate.spark.core.table_options import CLIENT, NO_OPTIONS, NO_TABLES, is_created

LOGS = "triplicate"
"""The format name of the source for logs and ledgers."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = "earliest"
LATEST = "latest"
ANY_LOG = ""
"""Stands for all logs where each could have a time of its own."""
TIME_LIMIT_MS = 253_402_300_800_000
"""The year 10000, in ms since the epoch."""
_LAST_TIME = datetime.max.replace(microsecond=0, tzinfo=UTC)

_DURATION = re.compile(r"([0-9]{1,15}) *(us|ms|s|m|min|h|d|)", re.ASCII)
_UNITS_S = {"us": 1e-6, "": 1e-3, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_SPARKS_OWN = frozenset(("checkpointlocation", "queryname"))
"""Options that Spark passes to sources and sinks in addition to the user's."""


_KAFKAS = {"kafka.bootstrap.servers": "metadataserviceuri", "assign": "subscribe", "kafka.group.id": "consumername", "topic": "log"}
_NO_OPTIONS = frozenset(("bookie_login", "bookie_tls", "mechanism", "password_file", "placement_script", "user"))
"""Settings of the client that decide whom a process trusts, as whom it acts, or which program it runs."""

ClientOptions = tuple[tuple[str, str], ...]
"""Settings of the client for one query: name and text."""
Access = tuple[str, str, str, ClientOptions]
"""How a query reaches its cluster: where the metadata is, the ledgers' password, the key file, settings of the client."""


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """The begin or end of a read: `word` is earliest or latest, or `offsets` has an offset for each log, or `times_ms` a time for each.

    Args:
        times_ms: in ms since the epoch; the one of `ANY_LOG` is for all logs.
        option: that gave the numbers for single logs. If logs are read by a pattern, they are not checked yet.
    """

    word: str | None
    offsets: Mapping[str, int]
    times_ms: Mapping[str, int] = field(default_factory=dict)
    option: str = ""

    def check(self, logs: Collection[str]) -> None:
        """Check that the numbers are those of the logs that are read. Raises ConfigError."""
        if self.option:
            check_logs(self.option, self.times_ms or self.offsets, logs)

    def time_ms(self, log: str) -> int:
        """The time for a log. Only where `times_ms` is not empty."""
        return self.times_ms[log] if log in self.times_ms else self.times_ms[ANY_LOG]


class Options:
    """The options of one source, with the error for each kind of mistake.

    Args:
        source: the format's name, for messages.
        given: the options from Spark, with keys in lower case.
        known: every option of the source, in the users' spelling.
    """

    def __init__(self, source: str, given: Mapping[str, str], known: Sequence[str]) -> None:
        self._source = source
        self._given = {key.lower(): value for key, value in given.items()}
        names = {name.lower(): name for name in known}
        has_tables = source == LOGS
        if not self._given.keys() - set(_SPARKS_OWN) or (is_created(source, given) and not has_tables):
            raise ConfigError(f"{source}: {(NO_OPTIONS if has_tables else NO_TABLES).format(source=source)}")
        for key in self._given:
            if key == "path":
                raise ConfigError(f"{source}: this source has no paths; use the options {', '.join(known)}")
            if key not in names and key not in _SPARKS_OWN and not (key.startswith(CLIENT) and has_tables):
                near = [_KAFKAS[key]] if _KAFKAS.get(key) in names else difflib.get_close_matches(key, names, 1)
                hint = f"did you mean {names[near[0]]!r}?" if near else f"known are {', '.join(known)}"
                raise ConfigError(f"{source}: unknown option {key!r}; {hint}")

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        return value.strip() or None if value is not None else None

    def client(self) -> ClientOptions:
        """The options ``client.…``: settings of the client, as (name, text), sorted.

        Raises:
            ConfigError: there is no such setting, it has no such value, or it does not belong into options, which plans and logs show.
        """
        given = {key.removeprefix(CLIENT): value for key, value in self._given.items() if key.startswith(CLIENT)}
        if not given:
            return ()
        from triplicate.config import ClientSettings, keys_of, settings_of_environment, variable_of

        known = {key.name for key in keys_of(ClientSettings)}
        for name, value in given.items():
            if name in _NO_OPTIONS:
                raise ConfigError(
                    f"{self._source}: option '{CLIENT}{name}' is a matter of security, and options are shown in plans and logs: set "
                    f"{variable_of('client', name)} in the environment, or a file that TRIPLICATE_CONFIG names"
                )
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, cutoff=0.5)
                hint = f"did you mean '{CLIENT}{near[0]}'?" if near else "see the settings `client` in docs/reference/settings.md"
                raise ConfigError(f"{self._source}: unknown option '{CLIENT}{name}'; {hint}")
            try:
                settings_of_environment(ClientSettings, {variable_of("client", name): value})
            except ConfigError as error:
                raise ConfigError(f"{self._source}: option '{CLIENT}{name}': {error}") from None
        return tuple(sorted(given.items()))

    def required(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise ConfigError(f'{self._source}: option {name!r} is missing; add .option("{name}", …)')
        return value

    def integer(self, name: str, default: int | None, *, low: int = 0) -> int | None:
        value = self.text(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            raise ConfigError(f"{self._source}: option {name!r} must be an integer, not {value!r}") from None
        if not low <= number < 2**63:
            bound = f"at least {low}" if number < low else "below 2^63"
            raise ConfigError(f"{self._source}: option {name!r} must be {bound}, not {number}")
        return number

    def limit(self, name: str) -> int | None:
        """An integer of at least 1, or None."""
        return self.integer(name, None, low=1)

    def duration(self, name: str, default_s: float) -> float:
        """A time in seconds, given as ``15m``, ``30s``, ``500ms`` or a number of ms."""
        value = self.text(name)
        if value is None:
            return default_s
        match = _DURATION.fullmatch(value.lower())
        if match is None:
            raise ConfigError(f"{self._source}: option {name!r} is a time as 15m, 30s, 2h or 500ms, not {value!r}")
        return int(match[1]) * _UNITS_S[match[2]]

    def word(self, name: str, *known: str) -> str | None:
        """One of the known words, in lower case, or None."""
        value = self.text(name)
        if value is not None and value.lower() not in known:
            raise ConfigError(f"{self._source}: option {name!r} is {' or '.join(known)}, not {value!r}")
        return value and value.lower()

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"{self._source}: option {name!r} must be true or false, not {value!r}")
        return value.lower() == "true"

    def point(self, name: str, logs: Sequence[str]) -> StartingPoint | None:
        """Parse ``earliest``, ``latest`` or ``{"flights": 1234}`` with an offset for each log.

        Args:
            logs: those that are read; empty if they are not known.
        """
        value = self.text(name)
        if value is None:
            return None
        if value.lower() in (EARLIEST, LATEST):
            return StartingPoint(value.lower(), {})
        words = "latest or JSON" if name.startswith("ending") else "earliest, latest or JSON"
        return StartingPoint(None, self._numbers(name, value, logs, words, 2**63), option=name)

    def times(self, name: str, logs: Sequence[str]) -> StartingPoint | None:
        """Parse ``{"flights": 1700000000000}`` with a time for each log, in ms since the epoch."""
        value = self.text(name)
        if value is None:
            return None
        return StartingPoint(None, {}, self._numbers(name, value, logs, "JSON with ms since 1970", TIME_LIMIT_MS), name)

    def time(self, name: str) -> StartingPoint | None:
        """Parse one time for all logs, in ms since the epoch."""
        number = self.integer(name, None)
        if number is not None and number >= TIME_LIMIT_MS:
            raise ConfigError(f"{self._source}: option {name!r} is a time in ms since 1970, before the year 10000, not {number}")
        return None if number is None else StartingPoint(None, {}, {ANY_LOG: number})

    def time_text(self, name: str) -> datetime | None:
        """A time in ISO 8601, in UTC where it has no offset, or in ms since the epoch. A source in Python does not know the zone of Spark's
        session."""
        text = self.text(name)
        if text is None:
            return None
        try:
            if text.lstrip("-").isdecimal():
                return EPOCH + timedelta(milliseconds=int(text))
            time = datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            raise ConfigError(
                f"{self._source}: option {name!r} is a time as 2026-11-01 10:00:00 (UTC), 2026-11-01T10:00:00+02:00, or milliseconds since "
                f"the epoch, not {text!r}"
            ) from None
        return min(time if time.tzinfo else time.replace(tzinfo=UTC), _LAST_TIME)

    def _numbers(self, name: str, value: str, logs: Sequence[str], forms: str, limit: int) -> dict[str, int]:
        try:
            pairs = json.loads(value, object_pairs_hook=tuple)
        except ValueError:
            pairs = None
        is_object = isinstance(pairs, tuple)
        numbers: dict[str, int] = dict(pairs) if is_object else {}
        if not is_object or len(numbers) < len(pairs) or not all(type(each) is int and 0 <= each < limit for each in numbers.values()):
            raise ConfigError(
                f'{self._source}: option {name!r} is {forms} as {{"log": 1234}}, with one number for each log, without partitions, -1 '
                f"and -2, not {value!r}"
            )
        if logs:
            check_logs(name, numbers, logs)
        return numbers


def check_logs(name: str, numbers: Mapping[str, int], logs: Collection[str]) -> None:
    """Check that an option gives a number for each log that is read, and for no other.

    Args:
        name: of the option.

    Raises:
        ConfigError.
    """
    unknown = [log for log in numbers if log not in logs]
    if unknown:
        read = ", ".join(sorted(logs)) or "none"
        raise ConfigError(f"{LOGS}: option {name!r} names {', '.join(unknown)}, which is not read; read are {read}")
    missing = [log for log in logs if log not in numbers]
    if missing:
        raise ConfigError(f"{LOGS}: option {name!r} gives no number for {', '.join(missing)}")
