"""The levels of recency at which reads are measured, each on the node where clients would read at it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CLIENTS = (16, 64)


@dataclass(frozen=True, slots=True)
class LevelOfReads:
    """One level.

    Args:
        settings: further parameters of a session, with ``{position}`` for the token.
        is_on_postgres: whether PostgreSQL has reads of the same kind without parameters: its server's, or its standby's.
    """

    name: str
    follower: bool
    is_on_postgres: bool
    settings: tuple[str, ...] = ()

    def options(self, position: int) -> str:
        """The parameters of a session, as in PGOPTIONS."""
        return " ".join(f"-c triplicate.{one.format(position=position)}" for one in (f"read_level={self.name}", *self.settings))


LEVELS = (
    LevelOfReads("linearizable", follower=False, is_on_postgres=True),
    LevelOfReads("session", follower=True, is_on_postgres=False, settings=("read_position={position}",)),
    LevelOfReads("bounded", follower=True, is_on_postgres=False, settings=("max_staleness=1s",)),
    LevelOfReads("any", follower=True, is_on_postgres=True),
)


def named() -> Iterator[tuple[str, LevelOfReads, int]]:
    """Name of the case, level and number of clients of each case."""
    for clients in CLIENTS:
        for level in LEVELS:
            yield f"read_{level.name}_{clients}", level, clients
