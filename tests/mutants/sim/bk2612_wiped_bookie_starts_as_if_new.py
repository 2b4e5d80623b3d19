"""A bookie on emptied disks ignores that its cookies are missing, and starts as a new one (BookKeeper issue 2612)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

KIND = "ledgers"
CHECKERS = ("bookies",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.directories import Directories
    from triplicate.errors import TriplicateError
    from triplicate.metadata import Cookie

    problems, lock = Directories.problems, Directories.lock

    def problems_of_what_is_there(self: Directories, ours: Cookie, known: Cookie | None, incarnation: int) -> Iterator[TriplicateError]:
        if any(self.cookie_in(directory) is not None for directory in self.configured):
            yield from problems(self, ours, known, incarnation)

    def lock_and_make(self: Directories, *, make: bool) -> None:
        lock(self, make=True)

    patch(Directories, "problems", problems_of_what_is_there)
    patch(Directories, "lock", lock_and_make)
