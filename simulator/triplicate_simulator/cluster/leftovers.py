"""What a play leaves in the metadata when all is over: nothing but what is listed here, and what the lists of its logs refer to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from triplicate.client import Client
from triplicate.log import LogClientSettings, Logs
from triplicate.metadata import MemoryStore, own

EXPECTED = tuple(
    re.compile(pattern)
    for pattern in (
        # BookKeeper's layout: cookies, where bookies register and ids come from, and ledgers, which `find_unlisted` looks at.
        r"/",
        r"/ledgers",
        r"/ledgers/(INSTANCEID|LAYOUT|available|available/readonly|cookies|idgen)",
        r"/ledgers/cookies/bookie-\d+",
        r"/ledgers/(idgen-long|\d+)(/.*)?",
        # What is the cluster's own: made once, or once for each bookie, database node, log and database.
        r"/triplicate",
        r"/triplicate/[^/]+",
        r"/triplicate/[^/]+/(clock|databases|dropped|incarnations|janitor|logs|nodes|subscriptions)",
        r"/triplicate/[^/]+/incarnations/bookie-\d+",
        r"/triplicate/[^/]+/nodes/[^/]+",
        r"/triplicate/[^/]+/logs/[^/]+",
        r"/triplicate/[^/]+/logs/[^/]+/(pages|publishers|forgotten|requests|snapshots)",
        r"/triplicate/[^/]+/databases/[^/]+",
        r"/triplicate/[^/]+/databases/[^/]+/candidates",
        # What `find_unlisted` holds against the lists of logs.
        r"/triplicate/[^/]+/logs/[^/]+/(pages|publishers)/[^/]+",
        # What waits for its time to be over: deleted ledgers, and notes of those that came back.
        r"/triplicate/[^/]+/(trash|returned)",
        r"/triplicate/[^/]+/(trash|returned)/\d+",
    )
)
"""Paths that may be there when all is over. Whoever adds a node to the metadata says here why it may stay."""
SHOWN = 5
"""Paths named in one finding."""


def find_strangers(store: MemoryStore) -> list[str]:
    """What must not be there once every process has ended: nodes of unknown purpose, and ephemeral ones."""
    dump = store.dump()
    strange = [path for path in dump if not any(pattern.fullmatch(path) for pattern in EXPECTED)]
    ephemeral = [path for path, (_, stat) in dump.items() if stat.ephemeral_owner]
    return [*_told("nodes that nobody expects", strange), *_told("ephemeral nodes without a process", ephemeral)]


async def find_unlisted(client: Client, settings: LogClientSettings, applications: Collection[str] = ()) -> list[str]:
    """What is there of the logs of a cluster in which nothing happens any more, and belongs to none, after a sweep that spares nothing.

    Args:
        settings: as the processes of the play have them.
        applications: those that publish.
    """
    logs = Logs(client, replace(settings, page_sweep_age_s=0.0, orphan_grace_s=0.0, staging_grace_s=0.0))
    metadata = client.metadata
    listed: set[int] = set()
    found: list[str] = []
    for name in await logs.names():
        await logs.sweep(name)
        head = await logs.head(name)
        listed |= {segment.ledger_id for segment in await logs.segments(name)}
        listed |= {snapshot.ledger_id for snapshot in (await logs.snapshots(name).read(fresh=True)).snapshots}
        pages, _ = await metadata.tree.children(own.pages_path(metadata.own_root, name))
        referred = await logs._store.pages(name, head)
        found += _told(f"pages of {name} that nothing refers to", [page for page in pages if int(page) not in referred])
        publishers, _ = await metadata.tree.children(own.publishers_path(metadata.own_root, name))
        strange = [publisher for publisher in publishers if own.decode_name(publisher) not in applications]
        found += _told(f"publishers of {name} that never were", strange)
    await logs.sweep_orphans()
    there = [ledger_id async for ledger_id in client.ledger_ids()]
    return [*found, *_told("ledgers that no log lists", [str(ledger_id) for ledger_id in there if ledger_id not in listed])]


def _told(what: str, names: Iterable[str]) -> list[str]:
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"{what}: {', '.join(names[:SHOWN])}{more}"] if names else []
