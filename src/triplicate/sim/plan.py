"""What one seed's run is to be: which play, how much of it, and which faults strike when. Drawn before it begins; plain data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Value = str | int | float | bool


@dataclass(frozen=True)
class Strike:
    """One fault that will strike. Times are simulated seconds since the moment when the play began."""

    kind: str
    """A name in `faults.KINDS`."""
    at_s: float
    target: str = ""
    """The node that is struck; empty where the kind strikes everybody."""
    other: str = ""
    """The node at the other end of a link."""
    lasts_s: float = 0.0
    options: Mapping[str, Value] = field(default_factory=dict)
    """What else the kind wants to know."""

    def __str__(self) -> str:
        words = [self.kind, self.target, f"-> {self.other}" if self.other else "", f"at {self.at_s:.3f} s"]
        words.append(f"for {self.lasts_s:.3f} s" if self.lasts_s else "")
        words += [f"{name}={value}" for name, value in self.options.items()]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Plan:
    """One run.

    `load` is the play's own frozen dataclass of plain values: how much is written by whom.
    """

    play: str
    load: Any
    faults: tuple[Strike, ...] = ()
    duration_s: float = 45.0
    """How long the play goes on before the faults stop; no fault begins later."""
    sync_high_s: float = 0.004
    """A disk's sync takes up to this long. On slow disks much is under way at any moment."""
    metadata_high_s: float = 0.004
    """Delay of a metadata operation, each way, at most."""

    def to_json(self) -> str:
        """As text that `scenario.plan_from_json` reads."""
        return json.dumps({"v": 1, **dataclasses.asdict(self)}, indent=1, sort_keys=True)
