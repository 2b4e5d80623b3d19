"""The problems of a cluster, each with the command that explains it. An empty list means that the cluster is healthy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triplicate.cli.overview.core.certificate_expiry import expiry_problem
from triplicate.cli.overview.core.cluster_facts import (
    SERVED_ROLES,
    BookieFacts,
    BookieState,
    ClusterFacts,
    LedgerCounts,
    LogFacts,
    MarkFacts,
    ReplicaFacts,
)
from triplicate.cli.overview.core.text_table import counted

NAMED_MAX = 3
"""How many things of a kind a problem names. It counts the others."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that an operator should look into."""

    text: str
    command: str
    """The command that shows more of it."""


def problems_of(facts: ClusterFacts) -> tuple[Problem, ...]:
    """All problems, the most urgent first. Of a cluster that does not run, only those that a start does not solve follow that one."""
    if not facts.runs:
        text = "nothing of this cluster runs: no bookie and no node is registered; start `triplicate up` of its folder, or its servers"
        stopped = Problem(text, f"triplicate up --dir {facts.folder}")
        return (stopped, *_silent_sources(facts), *_freeze(facts), *_acls(facts), *_unreadable(facts), *_certificates(facts))
    return (
        *_silent_sources(facts),
        *_freeze(facts),
        *_acls(facts),
        *_bookies(facts),
        *_repair(facts),
        *_nodes(facts),
        *_replicas("database", facts.databases.items, facts.absent_nodes),
        *_replicas("kv", facts.stores.items, facts.absent_nodes),
        *_logs(facts.logs.items),
        *_unreadable(facts),
        *_certificates(facts),
    )


def is_bad_bookie(bookie: BookieFacts) -> bool:
    """Whether the bookie is lost, does not answer, takes no entries, or may lack copies."""
    return bookie.state is not BookieState.WRITABLE or bool(bookie.silence) or not bookie.visited


def is_bad_replica(replica: ReplicaFacts) -> bool:
    """Whether no node leads it, or a copy is not served or missing."""
    return replica.leader is None or replica.missing > 0 or any(copy.role not in SERVED_ROLES for copy in replica.copies)


def is_bad_log(log: LogFacts) -> bool:
    """Whether segments are missing, lost, have too few copies, or cannot be read."""
    return log.lost > 0 or log.reduced > 0 or bool(log.missing or log.problem)


def _silent_sources(facts: ClusterFacts) -> Iterator[Problem]:
    again = "triplicate cluster status --timeout 60"
    sources = {
        "the bookies": facts.bookies.cut,
        "the ledgers": facts.ledgers.cut,
        "the database nodes": facts.nodes.cut,
        "the databases": facts.databases.cut,
        "the stores": facts.stores.cut,
        "the logs": facts.logs.cut,
        "the under-replicated ledgers": facts.marks.cut,
        "the state of auto-recovery": facts.recovery.cut,
        "the freeze of ensembles": facts.freeze.cut,
        "the certificates": facts.certificates.cut,
        "the ACLs of the metadata": facts.acls.cut,
    }
    silent: dict[str, list[str]] = {}
    for name, reason in sources.items():
        if reason:
            silent.setdefault(reason, []).append(name)
    for reason, names in silent.items():
        yield Problem(f"not read completely: {', '.join(names)}: {reason}", again)


def _freeze(facts: ClusterFacts) -> Iterator[Problem]:
    if facts.freeze.text:
        yield Problem(f"ensembles are frozen {facts.freeze.text}", "triplicate cluster freeze-ensembles off")


def _acls(facts: ClusterFacts) -> Iterator[Problem]:
    if facts.acls.open:
        yield Problem(open_nodes_text(facts.acls.open, facts.acls.nodes, facts.acls.example), "triplicate cluster secure-metadata")


def open_nodes_text(count: int, nodes: int, example: str) -> str:
    """The problem of nodes that everyone may use.

    Args:
        nodes: that were looked at.
    """
    return f"everyone may use {count} of the first {nodes} nodes in ZooKeeper, for example {example}"


def _bookies(facts: ClusterFacts) -> Iterator[Problem]:
    bookies = facts.bookies.items
    if not facts.has_bookie:
        # Nobody knows whether their data are lost: they are stopped together, and a decommission would be wrong.
        yield Problem("no bookie runs: none is registered; start their servers", "triplicate bookie list")
        return
    lost = [one for one in bookies if one.state is BookieState.LOST]
    unused = [one for one in lost if one.has_cookie and not facts.ledgers.cut and not facts.ledgers.by_bookie.get(one.bookie_id)]
    for one in unused:
        text = f"bookie {one.bookie_id} is lost, and no ledger names it: start it, or decommission it if it is gone for good"
        yield Problem(text, f"triplicate bookie decommission {one.bookie_id}")
    lost = [one for one in lost if one not in unused]
    if lost:
        named = _named([f"{one.bookie_id} ({_ledgers(facts.ledgers, one.bookie_id)})" for one in lost])
        yield Problem(f"{counted(len(lost), 'bookie is', 'bookies are')} lost: {named}", "triplicate bookie list")
    if not facts.bookies.cut and not any(one.state is BookieState.WRITABLE for one in bookies):
        yield Problem("no bookie is writable", "triplicate bookie list")
    if facts.missing_domains:
        yield Problem(facts.missing_domains, "triplicate cluster racks show")
    for one in bookies:
        if one.state is BookieState.UNREADABLE:
            text = f"bookie {one.bookie_id} runs, and its registration cannot be decoded: {one.silence}"
            yield Problem(text, f"triplicate bookie status --bookie-id {one.bookie_id}")
    silent = [one for one in bookies if one.silence and one.state is not BookieState.UNREADABLE]
    if silent:
        yield Problem(f"{counted(len(silent), 'bookie does', 'bookies do')} not answer: {_ids(silent)}", "triplicate bookie list")
    for one in bookies:
        if one.leaving and one.state is not BookieState.LOST:
            yield _departure(one)
        elif one.state is BookieState.READ_ONLY:
            yield Problem(f"bookie {one.bookie_id} is read-only{' on request' if one.requested else ''}", _read_only_command(one))
        elif one.state is BookieState.WRITABLE and one.requested:
            yield Problem(f"bookie {one.bookie_id} is writable, although it is requested to be read-only", _read_only_command(one))
        if not one.visited:
            text = f"the disks of bookie {one.bookie_id} were replaced, and its ledgers were not checked since"
            yield Problem(text, f"triplicate bookie status --bookie-id {one.bookie_id}")
    replaced = [one for one in bookies if not one.visited and one.incarnation > 1]
    if len(replaced) > 1:
        text = f"ledgers that are open on {_ids(replaced)} may have lost an ack quorum with their disks, and then wait for a decision"
        yield Problem(text, f"triplicate bookie refill {replaced[0].bookie_id}")
    for names in facts.shared_machines:
        yield Problem(shared_text(names), "triplicate bookie list")
    for reason in facts.location_problems:
        yield Problem(f"a network location is not used: {reason}", "triplicate cluster racks show")


def shared_text(names: Sequence[str]) -> str:
    """The problem of a machine with several names."""
    return f"{' and '.join(names)} are one machine, and count as several: let its bookies register one name (bookie.advertised_address)"


def _ledgers(counts: LedgerCounts, bookie_id: str) -> str:
    count = counts.by_bookie.get(bookie_id, 0)
    return f"{count}+ ledgers" if counts.cut else counted(count, "ledger", "ledgers")


def _read_only_command(bookie: BookieFacts) -> str:
    name = bookie.bookie_id
    return f"triplicate bookie set-readonly {name} off" if bookie.requested else f"triplicate bookie status --bookie-id {name}"


def _departure(bookie: BookieFacts) -> Problem:
    name = bookie.bookie_id
    if bookie.has_cookie:
        return Problem(f"bookie {name} is being decommissioned", f"triplicate bookie decommission {name}")
    return Problem(f"bookie {name} was decommissioned and still runs: stop it", f"triplicate bookie status --bookie-id {name}")


def _repair(facts: ClusterFacts) -> Iterator[Problem]:
    marks = facts.marks.items
    if not marks:
        return
    times = [one.since_ms for one in marks if one.since_ms is not None]
    oldest = f", the oldest for {age_text(facts.time_ms - min(times))}" if times else ""
    more = "" if not facts.marks.cut else " or more"
    text = f"{counted(len(marks), 'ledger is', 'ledgers are')}{more} under-replicated{oldest}{_missing(marks)}"
    yield Problem(text, "triplicate cluster under-replicated")
    if not facts.recovery.enabled:
        yield Problem("auto-recovery is disabled, so they stay under-replicated", "triplicate cluster recover --help")


def _missing(marks: tuple[MarkFacts, ...]) -> str:
    """How many ledgers lack the copies of each bookie, the most first, and how many only break the rules of placement."""
    counts: dict[str, int] = {}
    for mark in marks:
        for bookie_id in mark.missing:
            counts[bookie_id] = counts.get(bookie_id, 0) + 1
    named = _named([f"{count} on {name}" for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))])
    misplaced = sum(not mark.missing for mark in marks)
    missing = f"; copies missing: {named}" if named else ""
    return f"{missing}; misplaced: {misplaced}" if misplaced else missing


def _nodes(facts: ClusterFacts) -> Iterator[Problem]:
    for name in facts.absent_nodes:
        lacking = [one.name for one in (*facts.databases.items, *facts.stores.items) if name in one.missing_on]
        copies = f", and {_named(lacking)} {'lacks' if len(lacking) == 1 else 'lack'} a copy" if lacking else ""
        yield Problem(
            f"node {name} does not run{copies}: start it, or remove it with triplicate node remove {name}", "triplicate node list"
        )


def _replicas(group: str, replicas: Sequence[ReplicaFacts], absent_nodes: Sequence[str]) -> Iterator[Problem]:
    """The problems of databases or of stores, which a group of commands shows. That of a node which does not run names its copies."""
    kind = "store" if group == "kv" else group
    for one in replicas:
        command = f"triplicate {group} show {one.name}"
        if one.leader is None:
            why = _named([f"{copy.node_id}: {copy.reason}" for copy in one.copies if copy.reason])
            yield Problem(f"{kind} {one.name} has no leader{f' ({why})' if why else ''}", command)
        if one.missing > sum(name in absent_nodes for name in one.missing_on):
            lacking = f": none on {_named(list(one.missing_on))}" if one.missing_on else ""
            yield Problem(f"{kind} {one.name} has {one.expected - one.missing} of {one.expected} copies{lacking}", command)
        for copy in one.copies:
            if copy.role not in SERVED_ROLES:
                yield Problem(f"the copy of {kind} {one.name} on {copy.node_id} is {copy.role}", command)


def _logs(logs: tuple[LogFacts, ...]) -> Iterator[Problem]:
    for one in logs:
        if one.problem:
            yield Problem(f"log {one.name}: {one.problem}", f"triplicate log show {one.name}")
        if one.missing:
            named = _named([str(ledger_id) for ledger_id in one.missing])
            text = f"log {one.name} needs {counted(len(one.missing), 'ledger that is', 'ledgers that are')} gone: {named}"
            yield Problem(text, f"triplicate log repair {one.name}")
        if one.lost:
            yield Problem(f"log {one.name} has {counted(one.lost, 'lost segment', 'lost segments')}", f"triplicate log show {one.name}")
    reduced = [one for one in logs if one.reduced]
    if reduced:
        names = _named([one.name for one in reduced])
        count = counted(len(reduced), "log has", "logs have")
        yield Problem(f"{count} segments with fewer copies: {names}", f"triplicate log rewrite --dry-run {reduced[0].name}")


def _unreadable(facts: ClusterFacts) -> Iterator[Problem]:
    found = facts.ledgers.unreadable
    if found:
        names = _named([str(ledger_id) for ledger_id in found])
        yield Problem(
            f"the metadata of {counted(len(found), 'ledger', 'ledgers')} cannot be decoded: {names}", f"triplicate ledger show {found[0]}"
        )


def _certificates(facts: ClusterFacts) -> Iterator[Problem]:
    for one in facts.certificates.items:
        expiry = expiry_problem(one.expires_s, facts.time_ms / 1000) if one.expires_s is not None else ""
        if one.failure or expiry:
            yield Problem(f"the certificate of {one.place}: {one.failure or expiry}", "triplicate security renew --help")


def age_text(age_ms: int) -> str:
    """A time span for people. A negative one, between clocks that differ, counts as 0."""
    seconds = max(0, age_ms) // 1000
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 172_800 else f"{seconds // 86_400} days"


def _ids(bookies: list[BookieFacts]) -> str:
    return _named([one.bookie_id for one in bookies])


def _named(names: list[str]) -> str:
    rest = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
