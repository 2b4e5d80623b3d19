"""A session's run-time parameters: the values of SHOW, SET and RESET, and those reported to the client. Pure.

PostgreSQL has hundreds of parameters; here are those that clients read when they connect. A parameter without effect is stored and shown,
so that client libraries can set theirs. A value that stands for an unsupported behaviour is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from triplicate.errors import SqlError
from triplicate.sql.catalogue.catalogue_functions import CONSTANT_SETTINGS, UNUSED_SETTINGS
from triplicate.sql.core import read_levels

REPORTED = (
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "is_superuser",
    "session_authorization",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
    "in_hot_standby",
    "default_transaction_read_only",
)
"""Parameters that ParameterStatus reports at the start and whenever they change."""

_FIXED = {
    **CONSTANT_SETTINGS,
    "is_superuser": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "ssl": "off",
}
_DEFAULTS = {
    "client_encoding": "UTF8",
    "application_name": "",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "search_path": '"$user", public',
    "extra_float_digits": "1",
    "transaction_isolation": "serializable",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "off",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_min_messages": "notice",
    "bytea_output": "hex",
    "row_security": "off",
    "jit": "off",
    **UNUSED_SETTINGS,
    **read_levels.DEFAULTS,
}
_MUST_BE: Mapping[str, tuple[str, ...]] = {
    "client_encoding": ("utf8", "utf-8", "unicode"),
    "bytea_output": ("hex",),
    "standard_conforming_strings": ("on", "true", "1"),
}
_BOOLEANS = {"on": "on", "true": "on", "yes": "on", "1": "on", "off": "off", "false": "off", "no": "off", "0": "off"}
_NAMES = {name.lower(): name for name in (*_FIXED, *_DEFAULTS)}
"""Maps the lower-case name of a parameter to its spelling."""
TIME_ZONE, DATE_STYLE = "TimeZone", "DateStyle"
_UTC_NAMES = frozenset(
    ("utc", "etc/utc", "uct", "etc/uct", "gmt", "etc/gmt", "universal", "zulu", "etc/zulu", "z", "0", "+0", "+00", "+00:00")
)
SEARCH_PATH = "search_path"
_DATE_ORDERS = {"mdy": "MDY", "us": "MDY", "noneuro": "MDY", "noneuropean": "MDY"} | {
    "dmy": "DMY", "euro": "DMY", "european": "DMY", "ymd": "YMD",
}  # fmt: skip
REQUEST_ID = "triplicate.request_id"
AS_OF = "triplicate.as_of"
READ_ONLY = "default_transaction_read_only"
_TIMEOUT = "statement_timeout"
_TIMEOUTS = frozenset((_TIMEOUT, "lock_timeout", "idle_in_transaction_session_timeout"))


class SessionSettings:
    """The parameters of one session.

    Args:
        user: the name that the client connected with: its role, where the node authenticates.
        startup: the parameters of the first packet.
        has_tls: whether the server offers TLS.
    """

    def __init__(self, user: str, startup: Mapping[str, str], *, has_tls: bool = False) -> None:
        self.user = user
        self._has_tls = has_tls
        self.changes = 0
        """Number of changes so far; it increases whenever a value may have changed."""
        self._timeout_s: float | None = None
        """The last `statement_timeout_s`; None after a change."""
        self._own_names: dict[str, str] = {}
        """As `_NAMES`, for the parameters that only this session has."""
        self._values: dict[str, str] = {}
        """The values that are not the defaults."""
        self._local: dict[str, str] = {}
        """The values of SET LOCAL; removed when the transaction ends."""
        for name, value in _options(startup.get("options", "")).items():
            self._start_with(name, value)
        for name, value in startup.items():
            if name not in ("user", "database", "options", "replication") and not name.startswith("_pq_."):
                self._start_with(name, value)
        self._initial = dict(self._values)

    def _start_with(self, name: str, value: str) -> None:
        # Libraries send the machine's time zone at every start. The session's stays UTC, which is reported.
        if name.lower() in ("role", "session_authorization", AS_OF):
            raise SqlError("0A000", f"{name} cannot be set at the start of a session", hint="Send SET after it.")
        if name.lower() != TIME_ZONE.lower():
            self.set(name, value)

    def set(self, name: str, value: str, *, local: bool = False) -> str:
        """Set a parameter; returns its name as PostgreSQL spells it.

        Args:
            local: only until `end_transaction`.

        Raises:
            SqlError: 55P02 for a parameter that cannot change, 22023 for an unsupported value, 0A000 for a time zone other than UTC, a
                date style other than ISO and a search path without public.
        """
        spelled = self._spelling(name)
        if spelled in _FIXED and spelled not in _MUST_BE:
            raise SqlError("55P02", f'parameter "{spelled}" cannot be changed')
        allowed = _MUST_BE.get(spelled)
        if allowed is not None and value.lower().strip("'\"") not in allowed:
            raise SqlError("22023", f'parameter "{spelled}" supports only {" or ".join(allowed[:1])} here, not {value!r}')
        if spelled == TIME_ZONE:
            if value.lower().strip("'\"") not in _UTC_NAMES:
                raise SqlError(
                    "0A000",
                    f'parameter "{TIME_ZONE}" is UTC here, not {value!r}: a timestamp without an offset would have another meaning',
                    hint="write offsets ('2026-01-31 12:00+02'), or convert in the application",
                )
            value = "UTC"
        if spelled == DATE_STYLE:
            value = self._date_style(value)
        if spelled == SEARCH_PATH:
            _check_search_path(value)
        if spelled == READ_ONLY:
            if value.lower() not in _BOOLEANS:
                raise SqlError("22023", f'parameter "{spelled}" requires a Boolean value, not {value!r}')
            value = _BOOLEANS[value.lower()]
        if spelled in read_levels.DEFAULTS:
            value = read_levels.checked_read_parameter(spelled, value)
        if spelled not in _FIXED:
            self._count_change()
            (self._local if local else self._values)[spelled] = "UTF8" if spelled == "client_encoding" else value
            if not local:
                self._local.pop(spelled, None)
            if spelled.lower() not in _NAMES:
                self._own_names.setdefault(spelled.lower(), spelled)
        return spelled

    def _count_change(self) -> None:
        self.changes += 1
        self._timeout_s = None

    def _spelling(self, name: str) -> str:
        """A parameter's name as PostgreSQL spells it; an unknown one as it is."""
        lowered = name.lower()
        return _NAMES.get(lowered) or self._own_names.get(lowered, name)

    def _value(self, spelled: str) -> str | None:
        """The present value of a parameter that may change; None for an unknown one."""
        return self._local.get(spelled) if spelled in self._local else self._values.get(spelled, _DEFAULTS.get(spelled))

    def _date_style(self, value: str) -> str:
        """The style as PostgreSQL reports it. The order of day and month is kept, although no input format here depends on it."""
        order = self._values.get(DATE_STYLE, _DEFAULTS[DATE_STYLE]).partition(", ")[2]
        for word in value.lower().replace("'", "").replace('"', "").split(","):
            if word.strip() in _DATE_ORDERS:
                order = _DATE_ORDERS[word.strip()]
            elif word.strip() not in ("iso", "default"):
                raise SqlError(
                    "0A000", f'parameter "{DATE_STYLE}" is ISO here, not {value!r}', hint="format dates and times in the application"
                )
        return f"ISO, {order}"

    def end_transaction(self) -> None:
        """Remove the values of SET LOCAL."""
        if self._local:
            self._count_change()
            self._local.clear()

    def reset(self, name: str) -> str:
        """Reset a parameter to its value at the start of the session. Returns its name as PostgreSQL spells it."""
        self._count_change()
        spelled = self._spelling(name)
        self._local.pop(spelled, None)
        if spelled in self._initial:
            self._values[spelled] = self._initial[spelled]
        else:
            self._values.pop(spelled, None)
        return spelled

    def reset_all(self) -> None:
        """Reset all parameters to their values at the start of the session."""
        self._count_change()
        self._values = dict(self._initial)
        self._local.clear()

    @property
    def read_only(self) -> bool:
        """Whether transactions of this session are read-only by default."""
        return self._value(READ_ONLY) == "on"

    @property
    def reads(self) -> read_levels.ReadSettings:
        """The requirements of the session on its reads."""
        return read_levels.ReadSettings.of(*[self._value(name) or "" for name in read_levels.DEFAULTS])

    @property
    def statement_timeout_s(self) -> float:
        """Time limit of a statement, seconds; 0 for none. Raises SqlError 22023 if the start-up value is not a duration."""
        if self._timeout_s is None:
            self._timeout_s = duration_s(self._local.get(_TIMEOUT, self._values.get(_TIMEOUT, _DEFAULTS[_TIMEOUT])))
        return self._timeout_s

    def get(self, name: str, *, is_leader: bool) -> str:
        """The value that SHOW returns. Raises SqlError 42704 for an unknown parameter."""
        lowered = name.lower()
        if lowered == "in_hot_standby":
            return "off" if is_leader else "on"
        if lowered in (READ_ONLY, "transaction_read_only"):
            return "on" if not is_leader or self.read_only else "off"
        if lowered == "session_authorization":
            return self.user
        if lowered == "ssl":
            return "on" if self._has_tls else "off"
        known = self._spelling(name)
        value = _FIXED.get(known, self._value(known))
        if value is None and "." in known and lowered in self._own_names:
            return ""  # A custom parameter that was set and reset is empty, and not unknown.
        if value is None:
            raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
        return _with_unit(value) if known in _TIMEOUTS else value

    def spelled(self, name: str) -> str:
        """A parameter's name as PostgreSQL spells it. Raises SqlError 42704 for an unknown parameter."""
        self.get(name, is_leader=False)
        return next((known for known in REPORTED if known.lower() == name.lower()), self._spelling(name.lower()))

    def all(self, *, is_leader: bool) -> list[tuple[str, str]]:
        """Every parameter and its value, by name."""
        names = {*_FIXED, *_DEFAULTS, *self._values, *self._local, "in_hot_standby", "transaction_read_only"}
        return [(name, self.get(name, is_leader=is_leader)) for name in sorted(names, key=str.lower)]

    def description(self, name: str, value: str) -> dict[str, str]:
        """The columns of pg_settings about a parameter and its value."""
        default = _FIXED.get(name, _DEFAULTS.get(name))
        is_set = name in self._values or name in self._local
        source = "default" if not is_set else "session" if self._initial.get(name) != self._value(name) else "client"
        kind = "bool" if value in _BOOLEANS.values() else "integer" if name in _TIMEOUTS or value.isdigit() else "string"
        context = "user" if default is None or name in _DEFAULTS else "internal"
        initial = self._initial.get(name, value if default is None else default)
        return {"context": context, "vartype": kind, "source": source, "boot_val": default or "", "reset_val": initial}

    def reported(self, *, is_leader: bool) -> dict[str, str]:
        """The parameters that ParameterStatus reports, with their values."""
        return {name: self.get(name, is_leader=is_leader) for name in REPORTED}


def _check_search_path(value: str) -> None:
    """Refuse a path without the schema public, in which all tables are. Raises SqlError 0A000."""
    names = {name.strip().strip("'\"").lower() for name in value.split(",")}
    if "public" not in names and not names <= {"", "pg_catalog", "information_schema"}:
        raise SqlError(
            "0A000",
            f"there is one schema, public, which search_path {value!r} does not include",
            hint="Use a database instead of each schema.",
        )


def _options(text: str) -> dict[str, str]:
    """The parameters in libpq's ``options``: ``-c name=value`` and ``--name=value``.

    Raises:
        SqlError: 22023 for any other word.
    """
    parameters: dict[str, str] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SqlError("22023", f"options {text!r} cannot be read: {error}") from None
    remaining = iter(words)
    for word in remaining:
        setting = next(remaining, "") if word == "-c" else word[2:] if word.startswith(("-c", "--")) else ""
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise SqlError("22023", f"options {text!r} cannot be read: {word!r} is neither -c name=value nor --name=value")
        parameters[name.replace("-", "_")] = value
    return parameters


def _with_unit(text: str) -> str:
    """A duration as PostgreSQL shows it: in the largest unit of which it is a whole number. A value that is none is shown as it is."""
    try:
        milliseconds = round(duration_s(text) * 1000)
    except SqlError:
        return text
    units = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000}
    if not milliseconds:
        return "0"
    return next((f"{milliseconds // size}{unit}" for unit, size in units.items() if milliseconds % size == 0), f"{milliseconds}ms")


def duration_s(text: str) -> float:
    """Parse a duration: a number of milliseconds, or a number with a unit. Returns seconds. Raises SqlError 22023."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
    stripped = text.strip().strip("'")
    number = stripped.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = stripped[len(number) :].strip() or "ms"
    try:
        seconds = float(number) * units[unit]
    except (ValueError, KeyError):
        raise SqlError("22023", f"{text!r} is not a duration; write milliseconds, or a number with us, ms, s, min, h or d") from None
    if not 0 <= seconds * 1000 <= 2**31 - 1:
        raise SqlError("22023", f"{text!r} is outside the valid range: a duration is from 0 to {2**31 - 1} milliseconds")
    return seconds
