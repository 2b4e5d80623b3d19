"""The state of one connection in the extended and simple protocols. Pure: no I/O, no SQL, no time.

Three rules decide about a message, given the letters before it:

1. An error in a message of the extended protocol skips every message up to the next Sync. Terminate is never skipped.
2. Terminate is the last message. Nothing after it is served or answered.
3. A letter that the protocol does not have ends the connection, and so does a password, which belongs to the start-up.

The statements between two Syncs are one implicit transaction, unless there is only one. `is_implicit` says whether it is open.
Source: PostgreSQL 15 documentation, "Message Flow", sections "Extended Query", "Pipelining" and "Simple Query".
"""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

from triplicate.errors import ProtocolError, SqlError

StatementT = TypeVar("StatementT")
PortalT = TypeVar("PortalT")

STATEMENTS_MAX = 10_000
"""Limit on the prepared statements of one session, and on its portals."""
TURN_COST = 64
"""Limit on the sum of the costs of the messages that a connection serves in one turn of the event loop, while other connections wait.

With statements of 50 µs, this is about 1 ms. The sum is a count and not a time, so that a run of the simulator repeats exactly.
"""

EXTENDED = frozenset((b"P", b"B", b"D", b"E", b"C"))
"""Letters of messages whose errors skip everything up to the next Sync."""
_PASSWORD = b"p"
_COSTS = dict.fromkeys((b"B", b"C", b"S", b"H", b"F", b"d", b"c", b"f", b"X", _PASSWORD), 1) | {b"Q": 8, b"P": 8, b"E": 4, b"D": 2}
"""The letters of the protocol, with the cost of such a message."""
_COSTS_OF_ROUNDS = (_COSTS[b"B"] + _COSTS[b"E"] + _COSTS[b"S"], _COSTS[b"B"] + _COSTS[b"D"] + _COSTS[b"E"] + _COSTS[b"S"])
"""The cost of a round without Describe, and of one with it."""


class Reception(Enum):
    """The treatment of a message."""

    SERVED = "served"
    SKIPPED = "skipped"
    LAST = "last"


class ProtocolState(Generic[StatementT, PortalT]):
    """Decides which messages are served, and keeps the statements and portals that they name.

    Args:
        statements_max: bounds the prepared statements, and the portals.
    """

    def __init__(self, statements_max: int = STATEMENTS_MAX) -> None:
        self.statements_max = statements_max
        self.statements: dict[str, StatementT] = {}
        self.portals: dict[str, PortalT] = {}
        self.is_implicit = False
        """Whether the server began the open transaction, which ends with this query or at Sync."""
        self.is_busy = False
        """Whether a message is being served."""
        self.is_cancelled = False
        """Whether the message being served was cancelled. Sending of a read's rows stops then, even if the engine has returned them."""
        self.is_skipping = False
        """Whether messages are skipped up to the next Sync."""
        self.is_over = False
        """Whether the last message has been received, or the connection has ended otherwise."""
        self.turn_cost = 0
        """The sum of the costs of the messages in this turn of the event loop."""

    # Messages.

    def receive(self, letter: bytes) -> Reception:
        """Decide about the next message by its letter. When it has been served, `is_busy` is reset.

        Raises:
            ProtocolError: the letter is unknown or has no place here.
        """
        cost = _COSTS.get(letter)
        if cost is None:
            raise ProtocolError(f"unknown message type {letter!r}; the client breaks the protocol")
        self.turn_cost += cost
        if letter == b"S":
            self.is_skipping = False
        elif letter == b"X":
            self.is_over = True
            return Reception.LAST
        elif self.is_skipping:
            return Reception.SKIPPED
        elif letter == _PASSWORD:
            raise ProtocolError(f"message {letter.decode()!r} is not expected here")
        self.is_busy, self.is_cancelled = True, False
        return Reception.SERVED

    def receive_round(self, *, is_described: bool) -> None:
        """Receive a Bind, perhaps a Describe, an Execute and a Sync together. Valid where no messages are skipped."""
        self.turn_cost += _COSTS_OF_ROUNDS[is_described]
        self.is_busy, self.is_cancelled = True, False

    def receive_within(self, letter: bytes) -> None:
        """Count a further message that the present one uses up itself: data of COPY. A cancel stays in force."""
        self.turn_cost += _COSTS.get(letter, 1)
        self.is_over = self.is_over or letter == b"X"

    def receive_run(self, statements: int) -> None:
        """Count further statements that are served together with the present message, each a Bind and an Execute."""
        self.turn_cost += statements * (1 + _COSTS[b"E"])

    def fail_message(self) -> None:
        """A message of the extended protocol has failed: everything up to the next Sync is skipped."""
        self.is_skipping = True

    def cancel(self) -> None:
        """The client wants the message being served to end. A cancel between two messages has no effect."""
        self.is_cancelled = self.is_busy

    # Turns.

    def begin_turn(self) -> None:
        """A turn of the event loop begins. It is over when `turn_cost` has reached `TURN_COST`."""
        self.turn_cost = 0

    # Statements and portals.

    def check_new_statement(self, name: str) -> None:
        """Check whether Parse may define this name.

        Raises:
            SqlError: 42P05 for an existing name other than the empty one, 53400 at the limit.
        """
        if name and name in self.statements:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')
        if len(self.statements) >= self.statements_max:
            raise SqlError("53400", f"more than {self.statements_max} prepared statements in one session; close some")

    def check_new_portal(self, name: str) -> None:
        """Check whether Bind may define this name.

        Raises:
            SqlError: 42P03 for an existing name other than the empty one, 53400 at the limit.
        """
        if name and name in self.portals:
            raise SqlError("42P03", f'portal "{name}" already exists')
        if len(self.portals) >= self.statements_max:
            raise SqlError("53400", f"more than {self.statements_max} portals in one session; close some")

    def statement(self, name: str) -> StatementT:
        """Raises SqlError 26000 if there is no such statement."""
        statement = self.statements.get(name)
        if statement is None:
            raise SqlError("26000", f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist")
        return statement

    def portal(self, name: str) -> PortalT:
        """Raises SqlError 34000 if there is no such portal."""
        portal = self.portals.get(name)
        if portal is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return portal
