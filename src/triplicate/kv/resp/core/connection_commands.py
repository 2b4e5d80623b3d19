"""Commands that are not operations on named keys: typed requests, and the reading of their arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from triplicate.kv.core.store_interface import LevelKind
from triplicate.kv.resp.core.arguments import OptionWords, integer, unsigned
from triplicate.kv.resp.core.command_errors import SYNTAX, CommandError
from triplicate.kv.resp.core.glob import Glob
from triplicate.kv.resp.core.replies import RESP2, RESP3

NAME_BYTES_MAX = 256
"""Of the name that a client gives itself."""
BOUND_S_MAX = 3600.0
WAIT_MS_MAX = 60_000
SCAN_COUNT_MAX = 10_000
DEFAULT_USER = "default"


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password of AUTH or HELLO. The password is not part of its `repr`."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Hello:
    version: int | None
    login: Credentials | None
    name: bytes | None


@dataclass(frozen=True, slots=True)
class Auth:
    login: Credentials


@dataclass(frozen=True, slots=True)
class Ping:
    text: bytes | None


@dataclass(frozen=True, slots=True)
class Echo:
    text: bytes


@dataclass(frozen=True, slots=True)
class Plain:
    """A command without arguments that matter, by its name in small letters."""

    name: str


@dataclass(frozen=True, slots=True)
class SelectIndex:
    index: int


@dataclass(frozen=True, slots=True)
class ClientCommand:
    """CLIENT with one of its subcommands, in small letters."""

    subcommand: str
    value: bytes = b""


@dataclass(frozen=True, slots=True)
class CommandQuery:
    """COMMAND with one of its subcommands, empty without."""

    subcommand: str
    names: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Info:
    sections: frozenset[str]


@dataclass(frozen=True, slots=True)
class Keys:
    pattern: Glob


@dataclass(frozen=True, slots=True)
class Scan:
    cursor: int
    pattern: Glob | None
    count: int
    of_strings: bool
    """Whether the type that is asked for is the only one that there is."""


@dataclass(frozen=True, slots=True)
class WatchKeys:
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Subscription:
    """SUBSCRIBE, UNSUBSCRIBE and those for patterns. Without channels, UNSUBSCRIBE ends all."""

    begins: bool
    channels: tuple[bytes, ...]
    of_patterns: bool


@dataclass(frozen=True, slots=True)
class SetLevel:
    """TRIPLICATE.LEVEL; `kind` is None to ask for the present level."""

    kind: LevelKind | None
    age_s: float = 0.0
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """TRIPLICATE.POSITION; with a position, later reads of the session show at least this one."""

    position: int | None


ConnectionCommand = (
    Hello
    | Auth
    | Ping
    | Echo
    | Plain
    | SelectIndex
    | ClientCommand
    | CommandQuery
    | Info
    | Keys
    | Scan
    | WatchKeys
    | Subscription
    | SetLevel
    | Position
)


def hello(words: list[bytes]) -> Hello:
    if len(words) == 1:
        return Hello(None, None, None)
    if words[1] not in (b"2", b"3"):
        is_number = words[1].isdigit()
        raise CommandError(
            "NOPROTO unsupported protocol version" if is_number else "ERR Protocol version is not an integer or out of range"
        )
    login, name = None, None
    options = OptionWords(words, 2)
    while (option := options.next()) is not None:
        if option == b"AUTH":
            login = _login(options.value(), options.value())
        elif option == b"SETNAME":
            name = client_name(options.value())
        else:
            raise CommandError(f"ERR Syntax error in HELLO option '{_shown(option)}'")
    return Hello(RESP3 if words[1] == b"3" else RESP2, login, name)


def auth(words: list[bytes]) -> Auth:
    if len(words) > 3:
        raise CommandError(SYNTAX)
    return Auth(_login(words[1] if len(words) == 3 else DEFAULT_USER.encode(), words[-1]))


def _login(user: bytes, password: bytes) -> Credentials:
    try:
        return Credentials(user.decode(), password.decode())
    except UnicodeDecodeError:
        raise CommandError("WRONGPASS a user name and a password are UTF-8") from None


def client_name(name: bytes) -> bytes:
    """Raises CommandError: no client can have this name."""
    if len(name) > NAME_BYTES_MAX or any(not 33 <= byte <= 126 for byte in name):
        raise CommandError("ERR Client names cannot contain spaces, newlines or special characters.")
    return name


def ping(words: list[bytes]) -> Ping:
    return Ping(words[1] if len(words) > 1 else None)


def echo(words: list[bytes]) -> Echo:
    return Echo(words[1])


def plain(words: list[bytes]) -> Plain:
    return Plain(words[0].lower().decode())


def select(words: list[bytes]) -> SelectIndex:
    return SelectIndex(integer(words[1], "ERR invalid DB index"))


_CLIENT_VALUES = {"id": 2, "getname": 2, "info": 2, "list": 2, "setname": 3, "setinfo": 4, "no-evict": 3, "no-touch": 3}
"""Subcommands of CLIENT, and the number of words of each."""


def client(words: list[bytes]) -> ClientCommand:
    subcommand = _shown(words[1]).lower()
    wanted = _CLIENT_VALUES.get(subcommand)
    if wanted is None:
        raise CommandError(f"ERR unsupported subcommand '{_shown(words[1])[:64]}' of 'client': see docs/resp.md")
    if len(words) != wanted:
        raise CommandError(f"ERR wrong number of arguments for 'client|{subcommand}' command")
    value = words[-1] if wanted > 2 else b""
    if subcommand == "setname":
        client_name(value)
    elif subcommand == "setinfo" and words[2].upper() not in (b"LIB-NAME", b"LIB-VER"):
        raise CommandError(f"ERR Unrecognized option '{_shown(words[2])[:64]}'")
    elif subcommand.startswith("no-") and value.upper() not in (b"ON", b"OFF"):
        raise CommandError(SYNTAX)
    return ClientCommand(subcommand, value)


def command_query(words: list[bytes]) -> CommandQuery:
    subcommand = _shown(words[1]).lower() if len(words) > 1 else ""
    if subcommand not in ("", "count", "docs", "info", "list"):
        raise CommandError(f"ERR unsupported subcommand '{_shown(words[1])[:64]}' of 'command': see docs/resp.md")
    return CommandQuery(subcommand, tuple(words[2:]))


def info(words: list[bytes]) -> Info:
    return Info(frozenset(_shown(word).lower() for word in words[1:]))


def keys(words: list[bytes]) -> Keys:
    return Keys(Glob(words[1]))


def scan(words: list[bytes]) -> Scan:
    cursor = unsigned(words[1], "ERR invalid cursor")
    pattern, count, of_strings = None, 10, True
    options = OptionWords(words, 2)
    while (option := options.next()) is not None:
        value = options.value()
        if option == b"MATCH":
            pattern = Glob(value)
        elif option == b"COUNT":
            count = integer(value)
            if count < 1:
                raise CommandError(SYNTAX)
        elif option == b"TYPE":
            of_strings = value.lower() == b"string"
        else:
            raise CommandError(SYNTAX)
    return Scan(cursor, pattern, min(count, SCAN_COUNT_MAX), of_strings)


def watch(words: list[bytes]) -> WatchKeys:
    return WatchKeys(tuple(words[1:]))


def subscription(begins: bool, of_patterns: bool, words: list[bytes]) -> Subscription:
    return Subscription(begins, tuple(words[1:]), of_patterns)


def level(words: list[bytes]) -> SetLevel:
    """TRIPLICATE.LEVEL [linearizable | session [WAIT ms] | bounded SECONDS [WAIT ms] | any]."""
    if len(words) == 1:
        return SetLevel(None)
    try:
        kind = LevelKind(_shown(words[1]).lower())
    except ValueError:
        names = ", ".join(each.value for each in LevelKind)
        raise CommandError(f"ERR there is no level '{_shown(words[1])[:64]}'; the levels are {names}") from None
    options = OptionWords(words, 2)
    age_s = _seconds(options.value()) if kind is LevelKind.BOUNDED else 0.0
    wait_s = None
    while (option := options.next()) is not None:
        if option != b"WAIT" or kind not in (LevelKind.SESSION, LevelKind.BOUNDED):
            raise CommandError(SYNTAX)
        wait_ms = integer(options.value())
        if not 0 <= wait_ms <= WAIT_MS_MAX:
            raise CommandError(f"ERR WAIT is 0 to {WAIT_MS_MAX} milliseconds")
        wait_s = wait_ms / 1000
    return SetLevel(kind, age_s, wait_s)


def _seconds(word: bytes) -> float:
    try:
        value = float(word) if len(word) <= 32 else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value <= BOUND_S_MAX:
        raise CommandError(f"ERR the bound is a number of seconds from 0 to {BOUND_S_MAX:g}")
    return value


def position(words: list[bytes]) -> Position:
    if len(words) == 1:
        return Position(None)
    value = integer(words[1])
    if value < 0:
        raise CommandError("ERR a position is not negative")
    return Position(value)


def _shown(word: bytes) -> str:
    return word.decode("utf-8", "backslashreplace")
