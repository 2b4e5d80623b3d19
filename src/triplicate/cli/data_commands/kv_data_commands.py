"""``triplicate kv get|put|delete|scan|watch``: the keys of a store, by the protocol of Redis."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import click

from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import client_settings, cluster_uri, metadata_option
from triplicate.cli.terminal.output import remarks
from triplicate.cli.terminal.pipes import write_output
from triplicate.client import Client
from triplicate.config import SecuritySettings
from triplicate.errors import ArgumentError, ConfigError, ConnectionLost, EnvironmentFault, StoreError, StoreOutcomeUnknown
from triplicate.kv import ErrorReply, LevelKind, Push, Reply, RespClient, StoreInfo, store_info
from triplicate.runtime import Host, real_host, sleep
from triplicate.security import TlsIdentity, read_secret_file

PASSWORD_VARIABLE = "TRIPLICATE_KV_PASSWORD"
NODES_VARIABLE = "TRIPLICATE_KV_NODES"
LEADER_LIMIT_S = 10.0
LEADER_POLL_S = 0.2
SCAN_COUNT = 1000
_TRY_ELSEWHERE = ("READONLY", "TRYAGAIN", "LOADING", "STALE")
"""Codes after which nothing was changed, and another node may answer."""
_LEADER = re.compile(r" is node \S+ at (\S+:\d+)\Z")

Command = TypeVar("Command", bound=Callable[..., None])
Work = Callable[[RespClient], Awaitable[None]]


class StoreAnswer(StoreError):
    """The store has answered a request with an error."""


def connection_options(command: Command) -> Command:
    """Add the options that name the nodes and the role, handed to the command as one mapping `door`."""

    @wraps(command)
    def run(nodes: str | None, metadata: str | None, user: str | None, password_file: str | None, tls: bool | None, **more: Any) -> None:
        command(door={"nodes": nodes, "metadata": metadata, "user": user, "password_file": password_file, "tls": tls}, **more)

    options: tuple[Callable[[Any], Any], ...] = (
        click.option("--tls/--no-tls", default=None, help="Whether to connect with TLS. Default: if security.ca_file is set."),
        click.option("--password-file", metavar="FILE", help=f"File with the role's password. Default: the variable {PASSWORD_VARIABLE}."),
        click.option("--user", metavar="ROLE", help="Role to log in as. Default: none, for nodes without authentication."),
        click.option(
            "--nodes",
            metavar="HOST:PORT,…",
            envvar=NODES_VARIABLE,
            help=f"Addresses at which nodes serve RESP (resp.port). Default: the variable {NODES_VARIABLE}, or those in the metadata.",
        ),
        metadata_option,
    )
    decorated: Any = run
    for option in options:
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


_store = click.argument("store", metavar="STORE")
_level = click.option(
    "--level",
    default=LevelKind.LINEARIZABLE.value,
    show_default=True,
    metavar="LEVEL",
    help="Level of the read: linearizable, any, or 'bounded SECONDS'. Nodes that follow serve any other than linearizable.",
)


@click.command()
@_store
@click.argument("key", metavar="KEY")
@_level
@connection_options
def get(door: Mapping[str, Any], store: str, key: str, level: str) -> None:
    """Print the value of a key. Exits with 1 if it does not exist."""

    async def work(client: RespClient) -> None:
        await _asked(client, b"TRIPLICATE.LEVEL", *level.encode().split())
        value = await _asked(client, b"GET", key.encode())
        if value is None:
            raise ArgumentError(f"store {store} has no key {key!r}")
        assert isinstance(value, bytes), "GET answers a string"
        write_output(value + b"\n")

    _run(door, store, work)


@click.command()
@_store
@click.argument("key", metavar="KEY")
@click.argument("value", metavar="VALUE")
@click.option("--expires-after", "seconds", type=click.IntRange(1), metavar="SECONDS", help="Delete the key after this time.")
@click.option("--if-absent", is_flag=True, help="Only if the key does not exist; else exits with 1.")
@connection_options
def put(door: Mapping[str, Any], store: str, key: str, value: str, seconds: int | None, if_absent: bool) -> None:
    """Set a key to a value; the VALUE - is standard input, to its end."""
    data = value.encode() if value != "-" else sys.stdin.buffer.read()
    options = ([b"EX", b"%d" % seconds] if seconds else []) + ([b"NX"] if if_absent else [])

    async def work(client: RespClient) -> None:
        if await _asked(client, b"SET", key.encode(), data, *options) is None:
            raise ArgumentError(f"store {store} has a key {key!r} already")

    _run(door, store, work)


@click.command()
@_store
@click.argument("keys", metavar="KEY…", nargs=-1, required=True)
@connection_options
def delete(door: Mapping[str, Any], store: str, keys: tuple[str, ...]) -> None:
    """Delete keys, all at once, and print the number of those that existed."""

    async def work(client: RespClient) -> None:
        click.echo(await _asked(client, b"DEL", *(key.encode() for key in keys)))

    _run(door, store, work)


@click.command()
@_store
@click.argument("prefix", metavar="[PREFIX]", default="")
@click.option("--values", is_flag=True, help="Print each value behind its key and a tab.")
@_level
@connection_options
def scan(door: Mapping[str, Any], store: str, prefix: str, values: bool, level: str) -> None:
    """Print the keys that begin with PREFIX, in their order."""

    async def work(client: RespClient) -> None:
        await _asked(client, b"TRIPLICATE.LEVEL", *level.encode().split())
        cursor = b"0"
        while True:
            cursor, keys = _page(await _asked(client, b"SCAN", cursor, b"MATCH", literal(prefix) + b"*", b"COUNT", b"%d" % SCAN_COUNT))
            found = await _asked(client, b"MGET", *keys) if values and keys else keys
            assert isinstance(found, list), "MGET answers a list"
            lines = [key + b"\t" + value if values else key for key, value in zip(keys, found, strict=True) if value is not None]
            write_output(b"".join(line + b"\n" for line in lines))
            if cursor == b"0":
                return

    _run(door, store, work)


@click.command()
@_store
@click.argument("prefix", metavar="[PREFIX]", default="")
@connection_options
def watch(door: Mapping[str, Any], store: str, prefix: str) -> None:
    """Print the changes of keys that begin with PREFIX, one a line, until Ctrl-C: set, expire, persist, del, expired."""
    head = b"__keyspace@0__:"

    async def work(client: RespClient) -> None:
        client.send(b"PSUBSCRIBE", head + literal(prefix) + b"*")
        while True:
            lines = [_line_of(push, head) for push in await client.pushes()]
            write_output(b"".join(line + b"\n" for line in lines if line is not None))

    _run(door, store, work)


COMMANDS = (get, put, delete, scan, watch)


def _page(reply: Reply) -> tuple[bytes, list[bytes]]:
    """The cursor and the keys of an answer of SCAN."""
    assert isinstance(reply, list), "SCAN answers a list"
    cursor, keys = reply
    return cursor, keys


def _line_of(push: Push, head: bytes) -> bytes | None:
    if push.items[0] == b"psubscribe":
        remarks.print("watching")
        return None
    _, _, channel, event = push.items
    assert isinstance(channel, bytes)
    assert isinstance(event, bytes)
    return event + b"\t" + channel.removeprefix(head)


def literal(text: str) -> bytes:
    """A pattern that fits this text alone."""
    return b"".join(b"\\" + bytes((each,)) if each in b"*?[]^\\-" else bytes((each,)) for each in text.encode())


async def _asked(client: RespClient, *words: bytes) -> Reply:
    """Raises StoreOutcomeUnknown, StoreAnswer: the store refuses the request."""
    reply = await client.ask(*words)
    if isinstance(reply, ErrorReply):
        if reply.text.startswith("UNKNOWN"):
            raise StoreOutcomeUnknown(reply.text)
        raise StoreAnswer(reply.text)
    return reply


def _addresses(door: Mapping[str, Any], store: str) -> str:
    """The addresses of the nodes, with commas: those given, or those that serve RESP by the metadata, the leader's first.

    Raises:
        ConfigError: there are none.
    """
    if door["nodes"] is not None:
        return str(door["nodes"])
    hint = f"give --nodes, or set {NODES_VARIABLE} to the addresses that `triplicate kv show {store}` prints under resp"
    try:
        uri = cluster_uri(door["metadata"])
    except ConfigError as error:
        raise ConfigError(f"no node is named: {hint}, or name the cluster ({error})") from None
    found: list[StoreInfo] = []

    async def read(client: Client) -> None:
        found.append(await store_info(client, store))

    run_with_client(uri, read)
    nodes = sorted(found[0].nodes, key=lambda one: one.node_id != found[0].leader)
    addresses = [one.resp_address for one in nodes if one.resp_address]
    if not addresses:
        raise ConfigError(f"no node of store {store} serves RESP now: {hint}; nodes serve it with resp.serve, or `triplicate up --resp`")
    return ",".join(addresses)


def _leader_of(answer: str) -> tuple[str, int] | None:
    """The address of the leader in an answer of a node that follows."""
    found = _LEADER.search(answer) if answer.startswith("READONLY") else None
    return _address(found[1]) if found is not None else None


def _run(door: Mapping[str, Any], store: str, work: Work) -> None:
    """Run a command at the first node that serves it. A node that follows names the leader, which is asked next."""
    nodes = _addresses(door, store)
    addresses = [_address(text) for text in nodes.split(",") if text.strip()]
    if not addresses:
        raise ConfigError(f"--nodes, or {NODES_VARIABLE}, names no address")
    user, password = door["user"], _password(door["password_file"])
    if user and password is None:
        raise ConfigError(f"--user needs a password: give --password-file or the variable {PASSWORD_VARIABLE}")
    login = (f"{user}@{store}" if user else f"@{store}").encode(), (password or "").encode()

    async def body() -> None:
        host = real_host("kv")
        tls = _tls(host, door["tls"])
        deadline = host.clock.monotonic() + LEADER_LIMIT_S
        while True:
            failure: Exception | None = None
            waiting, asked = list(addresses), set[tuple[str, int]]()
            while waiting:
                address = waiting.pop(0)
                if address in asked:
                    continue
                asked.add(address)
                try:
                    await _run_at(host, address, tls, login, work)
                    return
                except ConnectionLost as error:
                    if "may have happened" in str(error):
                        raise
                    failure = failure if isinstance(failure, StoreAnswer) else error
                except StoreAnswer as error:
                    if not str(error).startswith(_TRY_ELSEWHERE):
                        raise
                    failure = error
                    leader = _leader_of(str(error))
                    waiting[:0] = [] if leader is None else [leader]
            if host.clock.monotonic() >= deadline:
                raise EnvironmentFault(f"no node of {nodes} serves this within {LEADER_LIMIT_S:g} s; the last one: {failure}")
            await sleep(host.clock, LEADER_POLL_S)

    run_loop(body())


async def _run_at(host: Host, address: tuple[str, int], tls: Any, login: tuple[bytes, bytes], work: Work) -> None:
    client = await RespClient.connect(host, address, tls)
    try:
        await _asked(client, b"HELLO", b"3", b"AUTH", *login)
        await work(client)
    finally:
        client.close()


def _tls(host: Host, wanted: bool | None) -> Any:
    security = client_settings(SecuritySettings)
    if wanted is False or (wanted is None and not security.ca_file):
        return None
    identity = TlsIdentity.open(security, host.clock, host.trace)
    if identity is None:
        raise ConfigError("--tls needs security.ca_file: set TRIPLICATE_SECURITY_CA_FILE, or name a file by TRIPLICATE_CONFIG")
    return identity.client_context()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"{text.strip()!r} is no HOST:PORT")
    return host.strip("[]"), int(port)


def _password(path: str | None) -> str | None:
    return read_secret_file(path, "--password-file") if path else os.environ.get(PASSWORD_VARIABLE)
