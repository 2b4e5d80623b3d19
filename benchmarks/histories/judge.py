"""The requirements of a history: registers and lists linearizable, transfers strictly serializable, no row lost or doubled, copies equal.

Pure: its inputs are the clients' observations and the nodes' final contents. Times are seconds of one clock.
Registers and lists are checked per key by the search of `checkers.linearizable`. Transfers need no search: the table of
transfers records their order, and every observation must fit that order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from triplicate_simulator.checkers.linearizability import Apply, Decision, RegisterOperation, apply_operation, decide

STEPS_MAX = 2_000_000
"""Limit of the search for one key."""
SHOWN = 5
"""Examples that one violation names."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A client's transfer, recorded under a number of the client's choice.

    Args:
        returned_s: None if the outcome is unknown.
        refused: the client got the answer that it did not happen and never will.
    """

    number: int
    source: str
    target: str
    amount: int
    invoked_s: float
    returned_s: float | None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A client's read of all balances and of the number of transfers, at one instant."""

    invoked_s: float
    returned_s: float
    balances: Mapping[str, int]
    transfers: int


@dataclass(frozen=True, slots=True)
class Noted:
    """A row of the table of transfers, in the order of their places."""

    number: int
    source: str
    target: str
    amount: int


@dataclass
class Seen:
    """Observations of the clients, in no particular order."""

    operations: dict[str, list[RegisterOperation]] = field(default_factory=dict)
    """Operations on registers and lists by key, without refused ones."""
    transfers: list[Transfer] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)


@dataclass
class Report:
    """Result of the checks."""

    keys: int = 0
    operations: int = 0
    transfers: int = 0
    statements: int = 0
    undecided: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not self.violations and not self.undecided

    def add(self, other: Report) -> None:
        """Add the result of further checks."""
        self.keys += other.keys
        self.operations += other.operations
        self.transfers += other.transfers
        self.statements += other.statements
        self.undecided += other.undecided
        self.violations += other.violations


def judge_keys(
    operations: Mapping[str, Sequence[RegisterOperation]],
    initial: Mapping[str, Hashable],
    report: Report,
    apply: Apply = apply_operation,
) -> None:
    """Each register and each list behaves as if its operations were done one at a time, each between its beginning and its end.

    Args:
        initial: prefix of a key up to its ``-`` → initial value of keys of that kind.
        apply: what the operations do.
    """
    for key, of_key in sorted(operations.items()):
        finding = decide(of_key, initial[key.partition("-")[0]], STEPS_MAX, apply)
        report.keys += 1
        report.operations += len(of_key)
        if finding.decision is Decision.NOT_DECIDED:
            report.undecided.append(f"{key}: not decided in {finding.steps} steps over {len(of_key)} operations")
        elif finding.decision is Decision.NOT_LINEARIZABLE:
            before = "; ".join(str(operation) for operation in finding.order[-3:])
            report.violations.append(
                f"{key}: no order explains its {len(of_key)} operations: after {len(finding.order)} of them ({before or 'none'}) there is "
                f"no place for {finding.stuck_at}"
            )


def judge_lists(operations: Mapping[str, Sequence[RegisterOperation]], final: Mapping[str, tuple[int, ...]], report: Report) -> None:
    """At the end a list holds each acknowledged item once, each unknown one at most once, and no other item."""
    for key, of_key in sorted(operations.items()):
        appends = [operation for operation in of_key if operation.kind == "append"]
        if not appends:
            continue
        held: Counter[object] = Counter(final.get(key, ()))
        asked = {operation.arguments[0] for operation in appends}
        lost = [operation.arguments[0] for operation in appends if operation.returned_s is not None and not held[operation.arguments[0]]]
        doubled = [item for item, times in held.items() if times > 1]
        strange = [item for item in held if item not in asked]
        for what, items in (("were acknowledged and are lost", lost), ("are there twice", doubled), ("were never appended", strange)):
            if items:
                report.violations.append(f"{key}: {len(items)} items {what}, for example {items[:SHOWN]}")


def judge_transfers(seen: Seen, noted: Sequence[Noted], initial: Mapping[str, int], final: Mapping[str, int], report: Report) -> None:
    """Transfers and reads are strictly serializable in the recorded order of transfers."""
    report.transfers += len(seen.transfers)
    report.statements += len(seen.statements)
    place = _places(seen.transfers, noted, report)
    balances = _replay(noted, initial, report)
    if dict(final) != balances[-1]:
        report.violations.append(f"balances at the end are {_different(final, balances[-1])}")
    begun = sorted((transfer.invoked_s, place[transfer.number]) for transfer in seen.transfers if transfer.number in place)
    _judge_order(seen, place, report)
    for statement in seen.statements:
        if not 0 <= statement.transfers <= len(noted):
            report.violations.append(f"a statement counts {statement.transfers} transfers, and {len(noted)} were noted in all")
        elif dict(statement.balances) != balances[statement.transfers]:
            different = _different(statement.balances, balances[statement.transfers])
            report.violations.append(f"a statement from {statement.invoked_s:.6f} after {statement.transfers} transfers shows {different}")
        else:
            later = [where for _, where in begun[bisect_left(begun, (statement.returned_s, -1)) :] if where <= statement.transfers]
            if later:
                report.violations.append(
                    f"a statement that ended at {statement.returned_s:.6f} shows transfers that began later: {later[:SHOWN]}"
                )


def _places(transfers: Iterable[Transfer], noted: Sequence[Noted], report: Report) -> dict[int, int]:
    """Each transfer's place, from 1 on. Reports lost and duplicated transfers, and refused ones that happened."""
    place = {row.number: index for index, row in enumerate(noted, 1)}
    known = {transfer.number: transfer for transfer in transfers}
    doubled = [number for number, times in Counter(row.number for row in noted).items() if times > 1]
    strange = [
        row.number
        for row in noted
        if row.number not in known
        or (row.source, row.target, row.amount) != (known[row.number].source, known[row.number].target, known[row.number].amount)
    ]
    lost = [one.number for one in known.values() if one.returned_s is not None and not one.refused and one.number not in place]
    undone = [one.number for one in known.values() if one.refused and one.number in place]
    for what, numbers in (
        ("were acknowledged and are lost", lost),
        ("are noted twice", doubled),
        ("were refused and have happened", undone),
        ("are noted as nobody asked for them", strange),
    ):
        if numbers:
            report.violations.append(f"{len(numbers)} transfers {what}, for example {numbers[:SHOWN]}")
    return place


def _replay(noted: Sequence[Noted], initial: Mapping[str, int], report: Report) -> list[dict[str, int]]:
    """The balances after each number of transfers."""
    now = dict(initial)
    balances = [dict(now)]
    for row in noted:
        now[row.source] -= row.amount
        now[row.target] += row.amount
        balances.append(dict(now))
        if now[row.source] < 0:
            report.violations.append(f"transfer {row.number} takes {row.amount} from {row.source}, which had less: two saw the same money")
    return balances


def _judge_order(seen: Seen, place: Mapping[int, int], report: Report) -> None:
    """An operation that ended before another began precedes it."""
    done = sorted(
        (one.returned_s, place[one.number])
        for one in seen.transfers
        if one.returned_s is not None and not one.refused and one.number in place
    )
    ended = [ended_s for ended_s, _ in done]
    furthest = list(accumulate((reached for _, reached in done), max))

    def least(invoked_s: float) -> int:
        before = bisect_left(ended, invoked_s)
        return furthest[before - 1] if before else 0

    for transfer in seen.transfers:
        where = place.get(transfer.number)
        if where is not None and where < least(transfer.invoked_s):
            report.violations.append(
                f"transfer {transfer.number} has place {where}, and one that had ended before has {least(transfer.invoked_s)}"
            )
    for statement in seen.statements:
        wanted = least(statement.invoked_s)
        if statement.transfers < wanted:
            report.violations.append(
                f"a statement from {statement.invoked_s:.6f} counts {statement.transfers} transfers after {wanted} had ended"
            )


def _different(found: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    names = [name for name in sorted({*found, *wanted}) if found.get(name) != wanted.get(name)]
    return ", ".join(f"{name} {found.get(name)} for {wanted.get(name)}" for name in names[:SHOWN])


def judge_copies(copies: Mapping[str, object], report: Report) -> None:
    """All nodes hold the same rows."""
    first, *others = sorted(copies)
    report.violations += [f"{other} and {first} hold different rows" for other in others if copies[other] != copies[first]]
