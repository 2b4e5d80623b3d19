"""The rule for what was made under the name of something deleted: what began on that one does nothing to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triplicate_simulator.checkers.history import Checker, History, Verdict


@dataclass(frozen=True, slots=True)
class NextLifeRead:
    """The holder of a name, as it was found after an operation that had begun on the one before.

    Args:
        name: what it is, and its name.
        identity, acknowledged, properties: of this one, as its creator and its writer saw it.
        found_id, found, found_properties: as a reader has found it; None: nothing has the name.
        possible: what may have been written to it besides.
    """

    time_s: float
    name: str
    identity: str
    acknowledged: tuple[bytes, ...]
    found_id: str | None
    found: tuple[bytes, ...]
    possible: tuple[bytes, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    found_properties: Mapping[str, str] = field(default_factory=dict)


def next_lives_are_left_alone(history: History, verdict: Verdict) -> None:
    """A holder of the name of something deleted is there, is the one that was made, and has what was acknowledged and set, and no more."""
    for event in history.of(NextLifeRead):
        verdict.decided += 1
        what = f"{event.name} of id {event.identity}, read at {event.time_s:.6f},"
        changed = [name for name, value in event.properties.items() if event.found_properties.get(name) != value]
        if event.found_id != event.identity:
            verdict.violations.append(f"{what} is gone" if event.found_id is None else f"{what} has the id {event.found_id}")
        elif tuple(one for one in event.found if one not in event.possible) != event.acknowledged:
            verdict.violations.append(f"{what} has {event.found}, and {event.acknowledged} were acknowledged")
        for name in changed if event.found_id == event.identity else ():
            found = event.found_properties.get(name)
            verdict.violations.append(f"{what} has {name} {found!r}, and {event.properties[name]!r} was set last")


LOG_RECREATION: dict[str, Checker] = {"next_logs_are_left_alone": next_lives_are_left_alone}
DATABASE_RECREATION: dict[str, Checker] = {"next_databases_are_left_alone": next_lives_are_left_alone}
STORE_RECREATION: dict[str, Checker] = {"next_stores_are_left_alone": next_lives_are_left_alone}
"""The checker by its name in each workload: each workload has to give it something to decide."""
