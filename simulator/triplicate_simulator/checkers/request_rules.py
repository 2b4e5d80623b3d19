"""The rule for a decommission that is refused after it has made its requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triplicate_simulator.checkers.history import Checker, History, Verdict


@dataclass(frozen=True, slots=True)
class DecommissionRefused:
    """A decommission of several bookies that was refused since an earlier one had begun.

    Args:
        before, after: the requests of its bookies that they be read-only, by bookie: their bytes, or None.
    """

    time_s: float
    before: Mapping[str, bytes | None]
    after: Mapping[str, bytes | None]


def refused_decommissions_leave_nothing(history: History, verdict: Verdict) -> None:
    """The requests of a refused decommission are withdrawn, and those that were there before are as they were."""
    for event in history.of(DecommissionRefused):
        verdict.decided += 1
        for bookie, before in event.before.items():
            after = event.after[bookie]
            if after != before:
                verdict.violations.append(
                    f"the decommission of {', '.join(event.before)} is refused at {event.time_s:.6f}: {bookie} had the request {before!r} "
                    f"before, and has {after!r}"
                )


REQUEST_CHECKERS: dict[str, Checker] = {"refused_decommissions_leave_nothing": refused_decommissions_leave_nothing}
