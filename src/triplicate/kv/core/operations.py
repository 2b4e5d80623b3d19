"""The operations of a key-value store, and batches of them. Values without behaviour.

Those of which each request has some are named tuples, whose creation costs a third of that of a frozen dataclass.

Keys and values are bytes of any content. Times are milliseconds since the epoch, by the time that the log's entries record. The version of
a key is the offset after the log record that changed it last; 0 stands for an absent key. So versions only grow, over all keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from triplicate.errors import StoreError

NEVER = 0
"""The deadline of a key without expiry."""


class When(Enum):
    """The condition of a single `Put`."""

    ALWAYS = "always"
    IF_ABSENT = "if absent"
    IF_PRESENT = "if present"


class DeadlineWhen(Enum):
    """The condition of a single `Expire`. A key without deadline counts as one with an infinite deadline."""

    ALWAYS = "always"
    IF_NONE = "if the key has no deadline"
    IF_SOME = "if the key has a deadline"
    IF_LATER = "if the new deadline is later"
    IF_SOONER = "if the new deadline is sooner"


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a key expires. At most one field is set; without any, the key has no deadline.

    Args:
        at_ms: absolute, milliseconds since the epoch. A time in the past deletes the key.
        after_ms: relative to the time of the log record that makes the change, at least 1.
        keeps: keep the deadline that the key has.
    """

    at_ms: int | None = None
    after_ms: int | None = None
    keeps: bool = False


NO_EXPIRY = Expiry()
KEEP_EXPIRY = Expiry(keeps=True)


class Get(NamedTuple):
    """Read a key between the other operations of its batch. Applied if the key exists."""

    key: bytes


class Put(NamedTuple):
    """Store a value."""

    key: bytes
    value: bytes
    expiry: Expiry = NO_EXPIRY
    when: When = When.ALWAYS
    """If the condition does not hold, the operation is not applied, and the other operations of the batch are."""
    returns_old: bool = False
    """Whether the outcome has the value before, also when the operation is not applied."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a key. Applied if it exists."""

    key: bytes
    returns_old: bool = False


@dataclass(frozen=True, slots=True)
class Expire:
    """Set or remove the deadline of a key. Applied if the key exists and `when` holds. With `NO_EXPIRY`: if it had a deadline."""

    key: bytes
    expiry: Expiry
    when: DeadlineWhen = DeadlineWhen.ALWAYS


@dataclass(frozen=True, slots=True)
class Add:
    """Add an integer to the value, which is a decimal text of a signed 64-bit integer; an absent key counts as 0. The deadline stays.

    The outcome has the new value. Error `WrongValue`: the value is no such integer; `SumOutOfRange`: the sum is none.
    """

    key: bytes
    amount: int


@dataclass(frozen=True, slots=True)
class Append:
    """Append bytes to the value; an absent key counts as empty. The deadline stays. The outcome has the new value."""

    key: bytes
    suffix: bytes


Operation = Get | Put | Delete | Expire | Add | Append


@dataclass(frozen=True, slots=True)
class KeyExists:
    """Condition: the key exists, or with `expected` false, it does not."""

    key: bytes
    expected: bool = True


@dataclass(frozen=True, slots=True)
class ValueIs:
    """Condition: the key has this value; None: it does not exist."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class VersionIs:
    """Condition: the key has this version; 0: it does not exist."""

    key: bytes
    version: int


Condition = KeyExists | ValueIs | VersionIs


class StoreBatch(NamedTuple):
    """Operations that happen together or not at all, in their order, if all conditions hold before the first."""

    operations: Sequence[Operation]
    conditions: Sequence[Condition] = ()
    continues_after_errors: bool = False
    """An operation that fails with `WrongValue` is not applied, and the others are. Otherwise the batch fails."""


class Outcome(NamedTuple):
    """The outcome of one operation of a batch."""

    applied: bool
    """Whether the operation changed something; of a `Get`, whether the key exists."""
    value: bytes | None = None
    """Get, Add, Append: the value (of the last two, after the change). Put and Delete with `returns_old`: the value before."""
    version: int = 0
    """Version of the key after the operation; 0 if it does not exist."""
    deadline_ms: int = NEVER
    """Deadline of the key after the operation; 0 for none."""
    error: StoreError | None = None
    """Why the operation failed, in a batch that continues after errors."""


class BatchResult(NamedTuple):
    """The answer to a batch. All copies at `position` or beyond show it."""

    held: bool
    """Whether all conditions held. Otherwise nothing was changed and `outcomes` is empty."""
    outcomes: Sequence[Outcome]
    """One for each operation."""
    position: int
    """The position at which the batch is visible: the token for session reads."""
    time_ms: int
    """The log's time of the batch, by which deadlines were compared and relative ones set."""
