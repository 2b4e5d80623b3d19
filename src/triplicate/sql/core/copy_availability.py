"""Whether a node's copy of a database accepts sessions, and the error for clients where it does not. Pure.

The copy starts, is opened, and is served unless it is suspected (its place in the log is in doubt until it has been compared with the
log) or is being built from the log. A snapshot that is loaded, a divergence and the end of the copy close it again.
"""

from __future__ import annotations

from triplicate.errors import SqlError


class CopyAvailability:
    """The availability of one copy.

    Args:
        name: the database's name, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._unusable: SqlError | None = SqlError("57P03", f"database {name!r} is starting")
        self._catching_up: SqlError | None = None
        self._suspicion: str | None = None
        self._is_closed = False

    @property
    def unusable(self) -> SqlError | None:
        """Why no session is accepted, or None."""
        return self._unusable

    @property
    def suspicion(self) -> str | None:
        """Why the copy must be compared with the log before it is served, or None."""
        return self._suspicion

    def check(self) -> None:
        """Raises SqlError when no session is accepted: 57P03, 58000."""
        if self._unusable is not None:
            raise self._unusable

    def catch_up(self, reason: SqlError) -> None:
        """The copy is built from the log and is not served before `caught_up`. Called before it is opened."""
        self._catching_up = reason

    def opened(self, suspicion: str | None) -> None:
        """The copy's file has been opened.

        Args:
            suspicion: why its place in the log is in doubt, None where it is not.
        """
        self._suspicion = suspicion
        if suspicion is None:
            self._unusable = self._catching_up

    def verified(self) -> None:
        """The copy has been compared with the log and agrees with it."""
        self._suspicion = None
        self._unusable = self._catching_up

    def caught_up(self) -> None:
        """The copy has applied enough of the log to be read."""
        if self._unusable is not None and self._unusable is self._catching_up:
            self._unusable = None
        self._catching_up = None

    def loads_snapshot(self) -> None:
        """A snapshot replaces the copy's file, which is opened again afterwards."""
        self._unusable = SqlError("57P03", f"database {self.name!r} is loading a snapshot", hint="Use another node, or try again.")

    def diverged(self, reason: str, *, is_position_mismatch: bool) -> SqlError:
        """The copy does not agree with the log; the error for the sessions that end."""
        if is_position_mismatch:
            hint = "Use another node; this one verifies its copy from time to time, and serves it again when the log confirms it."
        else:
            hint = "Use another node; this one sets its copy aside and builds another from the log."
        message = f"this node's copy of database {self.name!r} differs from the log and is not served: {reason}"
        self._unusable = SqlError("58000", message, hint=hint)
        return self._unusable

    def failed(self, error: Exception) -> None:
        """The copy has failed and will be opened again."""
        self._unusable = SqlError(
            "57P03",
            f"this node's copy of database {self.name!r} has failed and is opened again in a moment: {error}",
            hint="Use another node.",
        )

    def closing(self) -> bool:
        """The copy is being closed, and an earlier reason stays. False when it was closed before."""
        was_closed, self._is_closed = self._is_closed, True
        self._unusable = self._unusable or SqlError("57P03", f"database {self.name!r} is being closed")
        return not was_closed
