"""Checks what a run leaves in the metadata: only the nodes listed here, and those that the lists of its logs refer to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from triplicate.client import Client
from triplicate.log import LogClientSettings, Logs
from triplicate.metadata import MemoryStore, own_paths

EXPECTED = tuple(
    re.compile(pattern)
    for pattern in (
        # BookKeeper's layout: cookies, registrations, the id generator, and ledgers, which `find_unreferenced` checks.
        r"/",
        r"/ledgers",
        r"/ledgers/(INSTANCEID|LAYOUT|available|available/readonly|cookies|idgen)",
        r"/ledgers/cookies/bookie-\d+",
        r"/ledgers/(idgen-long|\d+)(/.*)?",
        # Marks of ledgers whose recovery left a bookie without its last copies. In a workload without repairs they stay.
        r"/ledgers/underreplication(/(LAYOUT|locks|ledgers(/[0-9a-f]{4}){0,4}))?",
        r"/ledgers/underreplication/ledgers(/[0-9a-f]{4}){4}/urL\d+",
        # Triplicate's own nodes: made once, or once for each bookie, database node, log and database.
        r"/triplicate",
        r"/triplicate/[^/]+",
        r"/triplicate/[^/]+/(clock|databases|dropped|drops|incarnations|janitor|logs|nodes|placed-nodes|placement|stores|subscriptions)",
        r"/triplicate/[^/]+/placed-nodes/[^/]+",
        r"/triplicate/[^/]+/incarnations/bookie-\d+",
        r"/triplicate/[^/]+/nodes/[^/]+",
        r"/triplicate/[^/]+/logs/[^/]+",
        r"/triplicate/[^/]+/logs/[^/]+/(pages|publishers|forgotten|requests|snapshots|producers|id|holders)",
        r"/triplicate/[^/]+/(databases|stores)/[^/]+",
        r"/triplicate/[^/]+/(databases|stores)/[^/]+/(candidates|id|id/[0-9a-f]{32})",
        # Checked by `find_unreferenced` against the lists of logs.
        r"/triplicate/[^/]+/logs/[^/]+/(pages|publishers|id|holders)/[^/]+",
        # Folders of damaged copies, and of notes and progress of repairs; a bookie to be read-only; the table of locations.
        r"/triplicate/[^/]+/(damaged|repairs|progress|readonly|readonly/bookie-\d+|racks)",
        # How long the auditor saw bookies absent that are lost at the end.
        r"/triplicate/[^/]+/absences",
        r"/triplicate/[^/]+/machines(/[^/]+)?",
        # Auto-recovery's nodes without locks. Recoveries mark ledgers that lack copies, and most workloads have no workers for them.
        r"/ledgers/underreplication(/(LAYOUT|ledgers|locks|lostBookieRecoveryDelay|disable|auditorelection))?",
        r"/ledgers/underreplication/(checkallledgersctime|placementpolicycheckctime|replicascheckctime)",
        r"/ledgers/underreplication/ledgers/[0-9a-f]{4}(/[0-9a-f]{4}){0,3}(/urL\d+)?",
        # Kept until a period ends: deleted ledgers, and notes of restored ones.
        r"/triplicate/[^/]+/(trash|returned)",
        r"/triplicate/[^/]+/(trash|returned)/\d+",
    )
)
"""Paths that may exist at the end of a run. Code that adds a node to the metadata lists it here, with the reason why it may stay."""
SHOWN = 5
"""Paths named in one finding."""


def find_unexpected_nodes(store: MemoryStore) -> list[str]:
    """Nodes that must not exist once every process has ended: those of unknown purpose, and ephemeral ones."""
    dump = store.dump()
    strange = [path for path in dump if not any(pattern.fullmatch(path) for pattern in EXPECTED)]
    ephemeral = [path for path, (_, stat) in dump.items() if stat.ephemeral_owner]
    return [*_finding("nodes of unknown purpose", strange), *_finding("ephemeral nodes without a process", ephemeral)]


async def find_unreferenced(client: Client, settings: LogClientSettings, applications: Collection[str] = ()) -> list[str]:
    """Nodes and ledgers that belong to no log, in an idle cluster, after a sweep without grace periods.

    Args:
        settings: as the processes of the workload use them.
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
        pages, _ = await metadata.tree.children(own_paths.pages_path(metadata.own_root, name))
        referred = await logs._store.pages(name, head)
        found += _finding(f"pages of {name} that nothing refers to", [page for page in pages if int(page) not in referred])
        ids, _ = await metadata.tree.children(own_paths.identities_path(own_paths.log_path(metadata.own_root, name)))
        found += _finding(f"identities in {name}, which is {head.log_id}", [log_id for log_id in ids if log_id != head.log_id])
        publishers, _ = await metadata.tree.children(own_paths.publishers_path(metadata.own_root, name))
        strange = [publisher for publisher in publishers if own_paths.decode_name(publisher) not in applications]
        found += _finding(f"publishers of {name} that never were", strange)
    await logs.sweep_orphans()
    there = [ledger_id async for ledger_id in client.ledger_ids()]
    return [*found, *_finding("ledgers that no log lists", [str(ledger_id) for ledger_id in there if ledger_id not in listed])]


def _finding(what: str, names: Iterable[str]) -> list[str]:
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"{what}: {', '.join(names[:SHOWN])}{more}"] if names else []
