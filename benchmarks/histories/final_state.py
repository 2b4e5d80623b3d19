"""The tables of a run, and the verdicts on its histories when every copy has been read at its end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.histories.clients import ACCOUNTS, SCHEMA, Shared, items_of
from benchmarks.histories.cluster import Address, DatabaseNodes, FaultyCluster, RunFailed, wait_for
from benchmarks.histories.judge import Noted, Report, judge_copies, judge_keys, judge_lists, judge_transfers
from benchmarks.histories.resp_connection import ConnectionEnded, RespConnection, is_refusal, leader_of
from benchmarks.histories.stages import Blame, Kind
from benchmarks.histories.store_clients import GROUP, KEYS
from benchmarks.histories.store_model import Step, apply_parts, empty_group, operation_of
from triplicate_simulator.checkers.linearizability import Apply, RegisterOperation, apply_operation

TABLES = ("registers", "lists", "accounts", "transfers")
READ_LIMIT_S = 10.0
PAGE_KEYS = 1000
EQUAL_LIMIT_S = 60.0
"""Longest time until all copies are equal."""
FIRST_VALUES: Mapping[str, Hashable] = {"register": None, "list": (), GROUP: empty_group(KEYS)}
"""Value of a new key by the prefix of its name."""
Content = TypeVar("Content")


def prepare(cluster: DatabaseNodes, database: str) -> bool:
    """Make the tables and accounts once a node leads; return whether they are made."""
    leader = cluster.leader(database)
    if leader is None:
        return False
    with cluster.session(leader, database) as session:
        session.execute("begin")
        for statement in SCHEMA:
            session.execute(statement)
        for name, balance in ACCOUNTS.items():
            session.execute("insert into accounts values(%s, %s)", (name, balance))
        session.execute("commit")
    return True


def judge_database(cluster: DatabaseNodes, shared: Shared, blame: Blame) -> Report:
    """Read every copy of the database, and check the history of its clients."""
    leader = wait_for(lambda: cluster.leader(shared.database), "a node leads")
    copies = read_copies(list(cluster.ports), lambda name: _rows(cluster, name, shared.database))
    rows = copies[leader]
    report = Report()
    judge_copies(copies, report)
    seen, now = shared.seen, time.monotonic()
    lists = {name: items_of(items) for name, items in rows["lists"]}
    final = {**dict(rows["registers"]), **lists}
    for key, operations in seen.operations.items():
        operations.append(RegisterOperation("read", (), now, now, final.get(key, () if key.startswith("list") else None), "judge"))
    judge_stages(Kind.STATEMENTS, seen.operations, report, blame, lists=lists)
    noted = [Noted(*row[1:]) for row in sorted(rows["transfers"])]
    transfers = Report()
    judge_transfers(seen, noted, ACCOUNTS, dict(rows["accounts"]), transfers)
    if transfers.violations:
        # The transfers of all stages are one history.
        blame.wrong |= {(stage, Kind.TRANSACTIONS) for stage in range(len(shared.stages.faults))}
    report.add(transfers)
    return report


def read_copies(names: Sequence[str], read: Callable[[str], Content]) -> dict[str, Content]:
    """Read the copies of all nodes again and again until they are equal, since a copy may lag; after the limit, as they are."""
    copies: dict[str, Content] = {}

    def are_equal() -> bool:
        copies.update({name: read(name) for name in names})
        return all(content == copies[names[0]] for content in copies.values())

    with contextlib.suppress(RunFailed):
        wait_for(are_equal, "all copies are equal", EQUAL_LIMIT_S)
    if len(copies) < len(names):
        raise RunFailed(f"the copies of {', '.join(name for name in names if name not in copies)} cannot be read")
    return copies


def judge_stages(
    kind: Kind,
    operations: Mapping[str, Sequence[RegisterOperation]],
    report: Report,
    blame: Blame,
    *,
    apply: Apply = apply_operation,
    lists: Mapping[str, tuple[int, ...]] | None = None,
) -> None:
    """Judge keys, and blame the stages to which the wrong ones belong.

    Args:
        apply: what the operations do.
        lists: items at the end.
    """
    by_stage: dict[int, dict[str, Sequence[RegisterOperation]]] = {}
    for key, of_key in operations.items():
        by_stage.setdefault(stage_of(key), {})[key] = of_key
    for stage, of_stage in sorted(by_stage.items()):
        part = Report()
        judge_keys(of_stage, FIRST_VALUES, part, apply)
        judge_lists(of_stage, lists or {}, part)
        report.add(part)
        if part.violations:
            blame.wrong.add((stage, kind))
        if part.undecided:
            blame.undecided.add((stage, kind))


def stage_of(key: str) -> int:
    """The stage of a key, from its name."""
    return int(key.split("-")[1])


def _rows(cluster: DatabaseNodes, name: str, database: str) -> dict[str, list[tuple[Any, ...]]]:
    with cluster.session(name, database) as session:
        session.execute("begin read only")
        found = {table: sorted(session.execute(f"select * from {table}").fetchall()) for table in TABLES}
        session.execute("commit")
    return found


def store_leader(cluster: FaultyCluster, store: str) -> str | None:
    """The name of the node that leads a store, if any."""
    names = cluster.resp_names()
    leader = leader_of(list(names), store)
    return None if leader is None else names[leader]


def judge_store(cluster: FaultyCluster, shared: Shared, blame: Blame) -> Report:
    """Read every copy of the store, and check the history of its clients."""
    store = shared.database
    leader = wait_for(lambda: store_leader(cluster, store), "a node leads the store")
    addresses = {name: address for address, name in cluster.resp_names().items()}
    copies = read_copies(list(addresses), lambda name: values_of(addresses[name], store, "linearizable" if name == leader else "any"))
    values = copies[leader]
    report = Report()
    judge_copies(copies, report)
    now = time.monotonic()
    steps = tuple(Step("get", cell) for cell in range(KEYS))
    for group, operations in shared.seen.operations.items():
        final = tuple(values.get(f"{group}:{cell}") for cell in range(KEYS))
        operations.append(operation_of(steps, now, now, final, "judge"))
    judge_stages(Kind.KEY_VALUE, shared.seen.operations, report, blame, apply=apply_parts)
    return report


def values_of(address: Address, store: str, level: str) -> dict[str, int]:
    """All keys of the groups with their values, from a node. Raises OSError: it does not answer, or refuses."""
    found: dict[str, int] = {}
    try:
        with contextlib.closing(RespConnection(address, store, READ_LIMIT_S)) as connection:
            connection.ask(("TRIPLICATE.LEVEL", level))
            cursor: Any = None
            while cursor != b"0":
                cursor, keys = _accepted(connection.ask(("SCAN", cursor or "0", "MATCH", f"{GROUP}-*", "COUNT", PAGE_KEYS)))
                values = _accepted(connection.ask(("MGET", *keys))) if keys else []
                found |= {key.decode(): int(value) for key, value in zip(keys, values, strict=True) if value is not None}
    except ConnectionEnded as error:
        raise OSError(str(error)) from error
    return found


def _accepted(answers: Sequence[Any]) -> Any:
    (answer,) = answers
    if is_refusal(answer):
        raise ConnectionEnded(str(answer))
    return answer
