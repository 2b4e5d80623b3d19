"""The rights that a statement needs, and the privileges that a role may have. Pure.

Source: PostgreSQL 15 documentation, "Privileges".
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Action(Enum):
    """One kind of use of a relation, or of the database."""

    SELECT = "r"
    INSERT = "a"
    UPDATE = "w"
    DELETE = "d"
    TRUNCATE = "D"
    REFERENCES = "x"
    """A foreign key that refers to the table."""
    TRIGGER = "t"
    """Is granted and shown. Only the owner creates triggers here."""
    CREATE = "C"
    """New tables and views in the database."""
    CONNECT = "c"
    OWN = "owner"
    """Changes of the definition. It cannot be granted."""
    SUPERUSER = "superuser"
    """The rest, which only a superuser may do. It cannot be granted."""


TABLE_ACTIONS = (
    Action.INSERT,
    Action.SELECT,
    Action.UPDATE,
    Action.DELETE,
    Action.TRUNCATE,
    Action.REFERENCES,
    Action.TRIGGER,
)
"""The privileges on a table or view, in the order in which PostgreSQL shows them."""
DATABASE_ACTIONS = (Action.CREATE, Action.CONNECT)
LETTERS = {action.value: action for action in (*TABLE_ACTIONS, *DATABASE_ACTIONS)}
"""Maps PostgreSQL's letter of a privilege to it."""


class Right(NamedTuple):
    """One right that a statement needs."""

    action: Action
    relation: str
    """The table's or view's name as the schema has it. For `Action.SUPERUSER` what is done; empty for `Action.CREATE`."""
    kind: str = "table"
    """``table``, ``view`` or ``index``."""
    definer: str = ""
    """The view, or the table of the trigger, whose owner needs the right; empty for the role that runs the statement."""


Rights = frozenset[Right]


def letters_of(actions: frozenset[Action]) -> str:
    """The letters of privileges, in PostgreSQL's order."""
    return "".join(action.value for action in (*TABLE_ACTIONS, *DATABASE_ACTIONS) if action in actions)


def actions_of(letters: str) -> frozenset[Action]:
    """The privileges of some letters. An unknown letter, of a later release, is no privilege here."""
    return frozenset(LETTERS[letter] for letter in letters if letter in LETTERS)
