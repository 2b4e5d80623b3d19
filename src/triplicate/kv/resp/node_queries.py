"""Commands that ask for the keys of a store without naming them, and for facts of the node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from triplicate.errors import StoreError
from triplicate.kv.core.store_interface import ALL_KEYS, KeyRange, KeyValueStore
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.command_table import TABLE, chosen, command_docs, command_info
from triplicate.kv.resp.core.connection_commands import CommandQuery, Info, Keys, Scan
from triplicate.kv.resp.core.replies import Reply, Verbatim
from triplicate.kv.resp.core.scan_cursors import Cursors
from triplicate.kv.resp.core.server_info import COMPATIBLE_VERSION, ClientFacts, ReplicationFacts, info_text
from triplicate.kv.resp.store_session import StoreSession
from triplicate.runtime import Host

KEYS_MAX = 10_000
"""Keys that KEYS answers; a pattern that more of them fit is refused."""
PAGE_KEYS = 1000
INFO_SECTIONS = ("server", "clients", "replication", "keyspace")


def package_version() -> str:
    """The version of this package; ``0`` where it is not installed."""
    try:
        return version("triplicate")
    except PackageNotFoundError:
        return "0"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The parts that all connections of a server share."""

    host: Host
    clients: Callable[[], Sequence[ClientFacts]]
    """The connections that were admitted."""
    version: str = field(default_factory=package_version)
    cursors: Cursors = field(default_factory=Cursors)

    def replication(self, store: KeyValueStore) -> ReplicationFacts:
        return ReplicationFacts(store.is_leader, store.leader_resp_address, store.position)


async def scan(node: NodeFacts, store: KeyValueStore, session: StoreSession, wanted: Scan) -> Reply:
    """SCAN: a page of keys, in their order. A key that exists from the beginning of a scan to its end is among them once.

    Raises:
        CommandError: the cursor is not known here. StoreError: the store cannot be read.
    """
    keys = KeyRange.prefix(b"" if wanted.pattern is None else wanted.pattern.prefix)
    if wanted.cursor:
        start = node.cursors.find(store.name, wanted.cursor)
        if start is None:
            raise CommandError("ERR invalid cursor: this node has not given it, or has forgotten it; begin again with 0")
        keys = keys.from_cursor(start)
    page = await store.scan(keys, wanted.count, session.read_level, with_values=False)
    session.see(page.position, page.age_s)
    found: list[Reply] = [
        item.key for item in page.items if wanted.of_strings and (wanted.pattern is None or wanted.pattern.matches(item.key))
    ]
    cursor = 0 if page.cursor is None else node.cursors.give(store.name, page.cursor)
    return [b"%d" % cursor, found]


async def keys(store: KeyValueStore, session: StoreSession, wanted: Keys) -> Reply:
    """KEYS. Raises CommandError: more than `KEYS_MAX` keys fit the pattern. StoreError."""
    rest, found = KeyRange.prefix(wanted.pattern.prefix), list[bytes]()
    oldest = None
    while True:
        page = await store.scan(rest, PAGE_KEYS, session.read_level, with_values=False)
        session.see(page.position)
        oldest = oldest or page
        found += [item.key for item in page.items if wanted.pattern.matches(item.key)]
        if len(found) > KEYS_MAX:
            raise CommandError(f"ERR more than {KEYS_MAX} keys fit the pattern; use SCAN")
        if page.cursor is None:
            session.see(oldest.position, oldest.age_s)
            return found
        rest = rest.from_cursor(page.cursor)


async def random_key(node: NodeFacts, store: KeyValueStore, session: StoreSession) -> Reply:
    """RANDOMKEY: the first key behind random bytes, or the first of those before them. No key is passed twice. Raises StoreError."""
    start = node.host.entropy.stream("kv.random_key").randbytes(8)
    for keys_of in (KeyRange(start), KeyRange(b"", start)):
        rest, limit = keys_of, 1
        while True:
            page = await store.scan(rest, limit, session.read_level, with_values=False)
            session.see(page.position, page.age_s)
            if page.items:
                return page.items[0].key
            if page.cursor is None:
                break
            rest, limit = keys_of.from_cursor(page.cursor), PAGE_KEYS  # Many keys have expired: the next pages are read on a thread.
    return None


async def size(store: KeyValueStore, session: StoreSession) -> Reply:
    """DBSIZE. Raises StoreError."""
    return await _count(store, session)


async def _count(store: KeyValueStore, session: StoreSession) -> int:
    counted = await store.count(ALL_KEYS, session.read_level)
    session.see(counted.position, counted.age_s)
    return counted.number


def table(query: CommandQuery) -> Reply:
    """COMMAND and its subcommands."""
    if query.subcommand == "count":
        return len(TABLE)
    if query.subcommand == "list":
        return list(TABLE)
    found = chosen(query.names)
    if query.subcommand == "docs":
        return {name: command_docs(spec) for name, spec in found if spec is not None}
    return [None if spec is None else command_info(spec) for _, spec in found]


async def info(node: NodeFacts, store: KeyValueStore | None, session: StoreSession, wanted: Info) -> Reply:
    """INFO. Sections that need a store are left out without one."""
    sections = set(wanted.sections & set(INFO_SECTIONS))
    if not wanted.sections or wanted.sections & {"default", "all", "everything"}:
        sections = set(INFO_SECTIONS)
    facts: dict[str, dict[str, object]] = {}
    if "server" in sections:
        facts["server"] = {
            "redis_version": COMPATIBLE_VERSION,
            "triplicate_version": node.version,
            "redis_mode": "standalone",
            "server_name": node.host.name,
            "server_time_usec": node.host.clock.wall_us(),
        }
    if "clients" in sections:
        facts["clients"] = {"connected_clients": len(node.clients())}
    if store is not None and "replication" in sections:
        facts["replication"] = {"store": store.name, **node.replication(store).lines()}
    if store is not None and "keyspace" in sections and session.rights.may_read:
        try:
            facts["keyspace"] = {"db0": f"keys={await _count(store, session)}"}
        except StoreError as error:
            facts["keyspace"] = {"db0_error": " ".join(str(error).split())}
    return Verbatim(info_text(facts))
