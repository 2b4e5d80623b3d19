"""Names of objects as SQL writes them, and as clients write them in a text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import SqlError


def quoted(name: str) -> str:
    """A name in quotes where SQL needs them."""
    plain = name.isascii() and name == name.lower() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'


def listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def name_parts(name: str) -> list[str]:
    """The parts of a dotted name, without their quotes. Raises SqlError 42602: a quote is not closed."""
    parts: list[str] = []
    rest = name.strip()
    while rest:
        if rest[0] == '"':
            end = rest.find('"', 1)
            while end > 0 and rest[end + 1 : end + 2] == '"':
                end = rest.find('"', end + 2)
            if end < 0:
                raise SqlError("42602", f"invalid name syntax: {name!r}")
            parts.append(rest[1:end].replace('""', '"'))
            rest = rest[end + 1 :].removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
            parts.append(part.strip().lower())
    return parts or [""]
