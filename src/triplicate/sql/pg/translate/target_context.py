"""The use of a translated text. Pure."""

from __future__ import annotations

from enum import Enum


class TargetContext(Enum):
    """The use of the text. Plain SQLite must be able to change tables, so expressions in their definitions call none of our functions."""

    STATEMENT = "statement"
    VIEW = "the query of a view: no session supplies its parameters"
    TRIGGER = "a statement of a trigger, or its condition: as for a view"
    STORED = "a definition of values that are stored: generated columns, unique indexes"
    CONDITION = "a definition whose values are not stored: numerics are computed in floats, and a division by zero is NULL"

    @property
    def calls_ours(self) -> bool:
        """Whether the text may call our functions."""
        return self is TargetContext.STATEMENT or self.is_without_session

    @property
    def is_without_session(self) -> bool:
        """Whether the text runs without a session that supplies parameters."""
        return self in (TargetContext.VIEW, TargetContext.TRIGGER)
