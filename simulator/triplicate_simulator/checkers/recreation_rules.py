"""The rule for a log that was created under the name of a deleted one: what began on that one does nothing to it."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate_simulator.checkers.history import Checker, History, Verdict


@dataclass(frozen=True, slots=True)
class NextLogRead:
    """A log as it was found after an operation that had begun on the log of its name before.

    Args:
        log_id, acknowledged: of this log, as its creator and its writer saw it.
        found_id, found: as a reader has found it; None: no log has the name.
    """

    time_s: float
    log: str
    log_id: str
    acknowledged: tuple[bytes, ...]
    found_id: str | None
    found: tuple[bytes, ...]


def next_logs_are_left_alone(history: History, verdict: Verdict) -> None:
    """A log that has the name of a deleted one is there, is the one that was created, and has what was acknowledged."""
    for event in history.of(NextLogRead):
        verdict.decided += 1
        what = f"log {event.log} of id {event.log_id}, read at {event.time_s:.6f},"
        if event.found_id != event.log_id:
            verdict.violations.append(f"{what} is gone" if event.found_id is None else f"{what} has the id {event.found_id}")
        elif event.found != event.acknowledged:
            verdict.violations.append(f"{what} has {event.found}, and {event.acknowledged} were acknowledged")


RECREATION_CHECKERS: dict[str, Checker] = {"next_logs_are_left_alone": next_logs_are_left_alone}
