"""Translates patterns of LIKE to patterns of SQLite's GLOB. Pure."""

from __future__ import annotations

from functools import lru_cache

from triplicate.errors import SqlError

_SPECIAL = "*?["


@lru_cache(maxsize=1000)
def check_escape(escape: str) -> None:
    """Raises SqlError 22025 if it is more than one character."""
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="The text behind ESCAPE must be empty or one character.")


def glob_of_like(pattern: str, escape: str = "\\") -> str:
    """The GLOB pattern that matches the same texts as a case-sensitive LIKE.

    Raises:
        SqlError: 22025 if the pattern ends with its escape character, or this is more than one.
    """
    check_escape(escape)
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            after = next(characters, None)
            if after is None:
                raise SqlError("22025", "LIKE pattern must not end with escape character")
            pieces.append(f"[{after}]" if after in _SPECIAL else after)
        elif character == "%":
            pieces.append("*")
        elif character == "_":
            pieces.append("?")
        else:
            pieces.append(f"[{character}]" if character in _SPECIAL else character)
    return "".join(pieces)
