"""The rule for owners of logs that could not be released when they ended."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate_simulator.checkers.history import Checker, History, Verdict


@dataclass(frozen=True, slots=True)
class OwnerEnded:
    """A writer has ended while its process could not reach the metadata, and reaches them again, in the same session.

    Args:
        owner: its process. successor: the process that asks for the log then, without a take-over.
        succeeded: whether it gets it. There is no other writer.
    """

    time_s: float
    log: str
    owner: str
    successor: str
    succeeded: bool


def ended_owners_let_go(history: History, verdict: Verdict) -> None:
    """A log whose writer has ended is free for the next one as soon as the process reaches the metadata, not when its session ends."""
    for event in history.of(OwnerEnded):
        verdict.decided += 1
        if not event.succeeded:
            verdict.violations.append(
                f"{event.successor} does not get log {event.log} at {event.time_s:.6f}: {event.owner} has ended there, and still owns it"
            )


OWNER_CHECKERS: dict[str, Checker] = {"ended_owners_let_go": ended_owners_let_go}
