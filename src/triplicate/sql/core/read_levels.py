"""How recent the state is that a session reads: the levels, and the session's parameters for them. Pure.

The level applies to the snapshot of a transaction, or of a statement outside of one. It is the level at the time of the first read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from triplicate.errors import SqlError

READ_LEVEL: Final = "triplicate.read_level"
MAX_STALENESS: Final = "triplicate.max_staleness"
READ_POSITION: Final = "triplicate.read_position"
DEFAULTS: Final[Mapping[str, str]] = {READ_LEVEL: "default", MAX_STALENESS: "10s", READ_POSITION: "0"}
"""The parameters of a session, in the order of `ReadSettings.of`, and their initial values."""
POSITION_MAX: Final = (1 << 63) - 1
STALENESS_MAX_S: Final = 86_400.0
_UNITS: Final[Mapping[str, float]] = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


class ReadLevel(Enum):
    """Which state a read sees."""

    DEFAULT = "default"
    """`LINEARIZABLE` on the node that leads, `ANY` on the others."""
    LINEARIZABLE = "linearizable"
    """Everything that was acknowledged before the read arrived. Only the leader answers."""
    SESSION = "session"
    """At least the position that the session was given."""
    BOUNDED = "bounded"
    """Everything that was acknowledged before a time ago."""
    ANY = "any"
    """A state that was once the database's."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The requirements of a session on its reads.

    Args:
        max_staleness_s: of `BOUNDED`.
        position: of `SESSION`: an offset of the log that the copy must have reached.
    """

    level: ReadLevel = ReadLevel.DEFAULT
    max_staleness_s: float = 10.0
    position: int = 0

    @classmethod
    def of(cls, level: str, max_staleness: str, position: str) -> ReadSettings:
        """From the texts of the three parameters. Raises SqlError 22023."""
        return cls(_level(level), _staleness_s(max_staleness), _position(position))


DEFAULT_READS: Final = ReadSettings()


def checked_read_parameter(name: str, value: str) -> str:
    """The text of one of the parameters of `DEFAULTS` as it is shown. Raises SqlError 22023."""
    ReadSettings.of(*{**DEFAULTS, name: value}.values())
    return value.strip().lower()


def _level(text: str) -> ReadLevel:
    try:
        return ReadLevel(text.strip().lower())
    except ValueError:
        raise SqlError(
            "22023",
            f'invalid value for parameter "{READ_LEVEL}": {text!r}',
            hint=f"Available values: {', '.join(level.value for level in ReadLevel)}.",
        ) from None


def _staleness_s(text: str) -> float:
    stripped = text.strip().lower()
    number = stripped.rstrip("mshin ")
    try:
        seconds = float(number) * _UNITS[stripped[len(number) :].strip()]
    except (ValueError, KeyError):
        seconds = math.nan
    if not 0.0 < seconds <= STALENESS_MAX_S:
        raise SqlError(
            "22023",
            f'invalid value for parameter "{MAX_STALENESS}": {text!r}',
            hint="Write seconds, or a number with ms, s, min or h: more than 0 and at most a day.",
        )
    return seconds


def _position(text: str) -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= 19 and int(stripped) <= POSITION_MAX):
        raise SqlError("22023", f'invalid value for parameter "{READ_POSITION}": {text!r}', hint="Write a result of triplicate_position().")
    return int(stripped)


# Refusals.


def only_leader_answers(name: str, leader: str | None) -> SqlError:
    """A linearizable read at a node that follows."""
    return SqlError(
        "25006",
        f"cannot read database {name!r} at level linearizable on this node: it follows",
        hint=f"The leader is at {leader}." if leader else "No leader is known at the moment; try again.",
    )


def not_at_position(name: str, position: int, wanted: int, waited_s: float) -> SqlError:
    """The copy has not reached the session's position within the limit."""
    return SqlError(
        "55P03",
        f"this copy of database {name!r} is at position {position} and has not reached {wanted} within {waited_s:g} s",
        detail=f"It is {wanted - position} records behind the position of the session.",
        hint="Read on the leader or on another node, or try again.",
    )


def not_recent_enough(name: str, age_s: float | None, max_staleness_s: float, waited_s: float, *, lacks: int, reason: str) -> SqlError:
    """The copy is not known to be as recent as the session asks within the limit.

    Args:
        age_s: of the copy, as far as it is known.
        lacks: records known to be in the log and not in the copy.
        reason: why the end of the log is not known; empty if it is.
    """
    known = "of unknown age" if age_s is None else f"{age_s:.3f} s behind"
    facts = [f"It lacks {lacks} records." if lacks else "", f"The end of the log is not known: {reason}" if reason else ""]
    return SqlError(
        "55P03",
        f"this copy of database {name!r} is {known}, and was not at most {max_staleness_s:g} s behind within {waited_s:g} s",
        detail=" ".join(fact for fact in facts if fact) or None,
        hint="Read on the leader or on another node, or allow a longer staleness.",
    )
