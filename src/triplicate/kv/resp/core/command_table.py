"""The table of commands: names, arities, flags and keys, and what reads the arguments of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from triplicate.kv.resp.core import connection_commands as connection
from triplicate.kv.resp.core import key_commands as keys
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.connection_commands import ConnectionCommand
from triplicate.kv.resp.core.key_commands import ComputedCommand, KeyCommand
from triplicate.kv.resp.core.replies import Reply, Simple
from triplicate.kv.resp.core.unsupported import UNSUPPORTED

Command = KeyCommand | ComputedCommand | ConnectionCommand

SHOWN_BYTES = 128
"""Of a name or of arguments that an error repeats."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command.

    Args:
        arity: number of words with the name; negative: at least the absolute number.
        flags: names of Redis, of which ``write``, ``readonly``, ``no_auth`` and ``no_multi`` have a meaning here.
        keys: first, last (-1: the last word) and step of the words that are keys; zeros without keys.
        read: reads the words, of which the arity is right. Raises CommandError.
    """

    name: str
    arity: int
    flags: frozenset[str]
    keys: tuple[int, int, int]
    group: str
    summary: str
    read: Callable[[list[bytes]], Command]

    def accepts(self, count: int) -> bool:
        return count == self.arity if self.arity > 0 else count >= -self.arity


_ONE, _ALL, _PAIRS, _NONE = (1, 1, 1), (1, -1, 1), (1, -1, 2), (0, 0, 0)


def _specs() -> list[CommandSpec]:
    def spec(
        name: str, arity: int, flags: str, where: tuple[int, int, int], group: str, summary: str, read: Callable[[list[bytes]], Command]
    ) -> CommandSpec:
        return CommandSpec(name, arity, frozenset(flags.split()), where, group, summary, read)

    string = [
        spec("get", 2, "readonly fast", _ONE, "string", "The value of a key.", keys.get),
        spec("set", -3, "write denyoom", _ONE, "string", "Set a key. EX PX EXAT PXAT KEEPTTL, NX XX, GET.", keys.set_value),
        spec("setnx", 3, "write denyoom fast", _ONE, "string", "Set a key that does not exist.", keys.setnx),
        spec("setex", 4, "write denyoom", _ONE, "string", "Set a key for a time in seconds.", partial(keys.set_for, 1000, "setex")),
        spec("psetex", 4, "write denyoom", _ONE, "string", "The same in milliseconds.", partial(keys.set_for, 1, "psetex")),
        spec("getset", 3, "write denyoom fast", _ONE, "string", "Set a key, and return its value before.", keys.getset),
        spec("getdel", 2, "write fast", _ONE, "string", "Delete a key, and return its value.", keys.getdel),
        spec("getex", -2, "write fast", _ONE, "string", "The value; sets or removes the deadline. EX PX EXAT PXAT PERSIST.", keys.getex),
        spec("mget", -2, "readonly fast", _ALL, "string", "The values of keys, of one moment.", keys.mget),
        spec("mset", -3, "write denyoom", _PAIRS, "string", "Set keys, all at once.", keys.mset),
        spec("msetnx", -3, "write denyoom", _PAIRS, "string", "Set keys if none of them exists.", keys.msetnx),
        spec("incr", 2, "write denyoom fast", _ONE, "string", "Add 1 to an integer.", partial(keys.increment, 1)),
        spec("decr", 2, "write denyoom fast", _ONE, "string", "Subtract 1 from an integer.", partial(keys.increment, -1)),
        spec("incrby", 3, "write denyoom fast", _ONE, "string", "Add an integer.", partial(keys.increment, 1)),
        spec("decrby", 3, "write denyoom fast", _ONE, "string", "Subtract an integer.", partial(keys.increment, -1)),
        spec("incrbyfloat", 3, "write denyoom fast", _ONE, "string", "Add a decimal number, with 17 digits.", keys.incrbyfloat),
        spec("append", 3, "write denyoom fast", _ONE, "string", "Append to a value.", keys.append),
        spec("strlen", 2, "readonly fast", _ONE, "string", "The length of a value.", keys.strlen),
        spec("getrange", 4, "readonly", _ONE, "string", "Part of a value.", keys.getrange),
        spec("substr", 4, "readonly", _ONE, "string", "Part of a value: the old name of GETRANGE.", keys.getrange),
        spec("setrange", 4, "write denyoom", _ONE, "string", "Overwrite part of a value.", keys.setrange),
    ]
    key = [
        spec("del", -2, "write", _ALL, "generic", "Delete keys, all at once.", keys.delete),
        spec("unlink", -2, "write fast", _ALL, "generic", "The same as DEL.", keys.delete),
        spec("exists", -2, "readonly fast", _ALL, "generic", "The number of keys that exist.", keys.exists),
        spec("type", 2, "readonly fast", _ONE, "generic", "The type: string or none.", keys.type_of),
        *(
            spec(name, -3, "write fast", _ONE, "generic", summary, partial(keys.expire, unit_ms, name, is_absolute=is_absolute))
            for name, unit_ms, is_absolute, summary in (
                ("expire", 1000, False, "Set the time to live in seconds. NX XX GT LT."),
                ("pexpire", 1, False, "Set the time to live in milliseconds. NX XX GT LT."),
                ("expireat", 1000, True, "Set the deadline in seconds since 1970. NX XX GT LT."),
                ("pexpireat", 1, True, "Set the deadline in milliseconds since 1970. NX XX GT LT."),
            )
        ),
        spec("persist", 2, "write fast", _ONE, "generic", "Remove the deadline.", keys.persist),
        *(
            spec(name, 2, "readonly fast", _ONE, "generic", summary, partial(keys.time_left, unit_ms, is_absolute=is_absolute))
            for name, unit_ms, is_absolute, summary in (
                ("ttl", 1000, False, "The time to live in seconds: -1 without end, -2 without key."),
                ("pttl", 1, False, "The time to live in milliseconds."),
                ("expiretime", 1000, True, "The deadline in seconds since 1970."),
                ("pexpiretime", 1, True, "The deadline in milliseconds since 1970."),
            )
        ),
        spec("keys", 2, "readonly no_multi", _NONE, "generic", "The keys that fit a pattern.", connection.keys),
        spec("scan", -2, "readonly no_multi", _NONE, "generic", "Some keys, and a cursor. MATCH COUNT TYPE.", connection.scan),
        spec("randomkey", 1, "readonly no_multi", _NONE, "generic", "Some key, of no known distribution.", connection.plain),
        spec("dbsize", 1, "readonly fast no_multi", _NONE, "server", "The number of keys.", connection.plain),
        spec("triplicate.cas", 4, "write denyoom fast", _ONE, "triplicate", "Set a key that has the old value.", keys.compare_and_set),
    ]
    return string + key + _connection_specs(spec)


def _connection_specs(spec: Callable[..., CommandSpec]) -> list[CommandSpec]:
    transactions = [
        spec("multi", 1, "fast", _NONE, "transactions", "Begin to queue commands.", connection.plain),
        spec("exec", 1, "", _NONE, "transactions", "Run the queued commands, all at once.", connection.plain),
        spec("discard", 1, "fast", _NONE, "transactions", "Forget the queued commands.", connection.plain),
        spec("watch", -2, "fast", _ALL, "transactions", "Let EXEC do nothing if a key has changed.", connection.watch),
        spec("unwatch", 1, "fast", _NONE, "transactions", "Forget the watched keys.", connection.plain),
    ]
    subscriptions = [
        spec(
            f"{'p' if of_patterns else ''}{'' if begins else 'un'}subscribe",
            -2 if begins else -1,
            "pubsub no_multi",
            _NONE,
            "pubsub",
            f"{'Begin' if begins else 'End'} to receive notifications of keys{', by pattern' if of_patterns else ''}.",
            partial(connection.subscription, begins, of_patterns),
        )
        for begins in (True, False)
        for of_patterns in (False, True)
    ]
    others = [
        spec("hello", -1, "no_auth fast no_multi", _NONE, "connection", "Choose the version; AUTH, SETNAME.", connection.hello),
        spec("auth", -2, "no_auth fast no_multi", _NONE, "connection", "Log in, and choose the store.", connection.auth),
        spec("quit", -1, "no_auth fast no_multi", _NONE, "connection", "End the connection.", connection.plain),
        spec("reset", 1, "no_auth fast no_multi", _NONE, "connection", "Return to the state of a new connection.", connection.plain),
        spec("ping", -1, "fast", _NONE, "connection", "PONG, or the text.", connection.ping),
        spec("echo", 2, "fast", _NONE, "connection", "The text.", connection.echo),
        spec("select", 2, "fast", _NONE, "connection", "There is database 0 only.", connection.select),
        spec(
            "client",
            -2,
            "no_multi",
            _NONE,
            "connection",
            "ID INFO LIST SETNAME GETNAME SETINFO NO-EVICT NO-TOUCH.",
            connection.client,
        ),
        spec("command", -1, "no_multi", _NONE, "server", "This table. COUNT, DOCS, INFO, LIST.", connection.command_query),
        spec("info", -1, "no_multi", _NONE, "server", "Facts of this node and store.", connection.info),
        spec("role", 1, "fast no_multi", _NONE, "server", "Whether this node leads the store.", connection.plain),
        spec("time", 1, "fast", _NONE, "server", "The time of this node.", connection.plain),
        spec("triplicate.level", -1, "fast no_multi", _NONE, "triplicate", "Show or choose the level of reads.", connection.level),
        spec("triplicate.lastread", 1, "fast", _NONE, "triplicate", "Where the last answer was read, and its age.", connection.plain),
        spec("triplicate.position", -1, "fast no_multi", _NONE, "triplicate", "Show or raise the session's position.", connection.position),
    ]
    return transactions + subscriptions + others


TABLE: dict[bytes, CommandSpec] = {each.name.encode(): each for each in _specs()}
"""Name in small letters → the command."""


def find(words: list[bytes]) -> CommandSpec:
    """The command of a request.

    Raises:
        CommandError: there is none, or it has another number of words.
    """
    spec = TABLE.get(words[0]) or TABLE.get(words[0].lower())
    if spec is None:
        raise CommandError(_unknown(words))
    if not spec.accepts(len(words)) or (spec.name == "ping" and len(words) > 2):
        raise CommandError(f"ERR wrong number of arguments for '{spec.name}' command")
    return spec


def _unknown(words: list[bytes]) -> str:
    name = shown(words[0])
    reason = UNSUPPORTED.get(name.lower())
    if reason is not None:
        return f"ERR unsupported command '{name.upper()}': {reason} (docs/resp.md)"
    beginning, size = [], 0
    for word in words[1:]:
        if size >= SHOWN_BYTES:
            break
        beginning.append(f"'{shown(word[: SHOWN_BYTES - size])}' ")
        size += len(word)
    return f"ERR unknown command '{name}', with args beginning with: {''.join(beginning)}"


def shown(word: bytes) -> str:
    return word[:SHOWN_BYTES].decode("utf-8", "backslashreplace")


# COMMAND.


def command_info(spec: CommandSpec) -> Reply:
    """One element of COMMAND's answer."""
    first, last, step = spec.keys
    flags = [Simple(flag) for flag in sorted(spec.flags)]
    category = "@write" if "write" in spec.flags else "@read" if "readonly" in spec.flags else "@connection"
    return [spec.name.encode(), spec.arity, flags, first, last, step, [Simple(category)], [], [], []]


def command_docs(spec: CommandSpec) -> Reply:
    """One value of COMMAND DOCS."""
    return {b"summary": spec.summary.encode(), b"since": b"1.0.0", b"group": spec.group.encode(), b"complexity": b""}


def chosen(names: tuple[bytes, ...]) -> list[tuple[bytes, CommandSpec | None]]:
    """The commands of these names, None where there is none; all without names."""
    if not names:
        return [*TABLE.items()]
    return [(name.lower(), TABLE.get(name.lower())) for name in names]
