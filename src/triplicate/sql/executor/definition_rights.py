"""The rights that a definition needs: whose table it changes, and which queries it runs. Pure.

The text is SQLite's, as `Authorizer.examine` accepts it. Any other statement needs a superuser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from triplicate.sql.core.brackets import closing
from triplicate.sql.core.lexer import Token, identifier, sqlite_tokens
from triplicate.sql.core.rights import Action, Right, Rights

CREATES = Right(Action.CREATE, "")


class DefinitionNeeds(NamedTuple):
    """The needs of a definition."""

    rights: Rights = frozenset()
    owned: tuple[tuple[str, str], ...] = ()
    """(kind, name) of the objects that only their owner may change: ``TABLE``, ``VIEW``, ``INDEX`` or ``TRIGGER``."""
    query: str = ""
    """The query whose rows fill a new table."""


def only_superusers(what: str) -> DefinitionNeeds:
    return DefinitionNeeds(frozenset((Right(Action.SUPERUSER, what),)))


def definition_needs(sql: str) -> DefinitionNeeds:
    """The needs of a statement that changes the schema or a setting of the database."""
    tokens = [token for token in sqlite_tokens(sql) if token.text != ";"]
    words = [token.text.upper() if token.kind == "word" else token.text for token in tokens]
    first = words[0] if words else ""
    try:
        match first:
            case "CREATE":
                return _create(sql, tokens, words)
            case "DROP":
                return _drop(tokens, words)
            case "ALTER" if words[1] == "TABLE":
                return DefinitionNeeds(owned=(("TABLE", _name(tokens, 2)[0]),))
    except IndexError:
        pass  # The statement ends early; SQLite says so when it is examined.
    return only_superusers(f"use {first or 'this statement'} here")


def _name(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """A name, perhaps with its schema, and the index after it."""
    if at + 2 < len(tokens) and tokens[at + 1].text == ".":
        return identifier(tokens[at + 2]), at + 3
    return identifier(tokens[at]), at + 1


def _after(words: Sequence[str], at: int, *expected: str) -> int:
    return at + len(expected) if tuple(words[at : at + len(expected)]) == expected else at


def _create(sql: str, tokens: Sequence[Token], words: Sequence[str]) -> DefinitionNeeds:
    if words[1] == "VIRTUAL":
        # A full-text table may take its rows from any other table, and a vocabulary shows the words of one.
        return only_superusers("create virtual tables")
    if words[1] == "VIEW":
        return DefinitionNeeds(frozenset((CREATES,)))
    if words[1] in ("INDEX", "UNIQUE"):
        at = _after(words, 3 if words[1] == "UNIQUE" else 2, "IF", "NOT", "EXISTS")
        _, at = _name(tokens, at)
        return DefinitionNeeds(owned=(("TABLE", _name(tokens, _after(words, at, "ON"))[0]),))
    if words[1] == "TRIGGER":
        at = _after(words, 2, "IF", "NOT", "EXISTS")
        _, at = _name(tokens, at)
        return DefinitionNeeds(owned=(("TABLE", _name(tokens, words.index("ON", at) + 1)[0]),)) if "ON" in words[at:] else _unknown()
    if words[1] == "TABLE":
        return _create_table(sql, tokens, words)
    return _unknown()


def _unknown() -> DefinitionNeeds:
    return only_superusers("use this definition")


def _create_table(sql: str, tokens: Sequence[Token], words: Sequence[str]) -> DefinitionNeeds:
    name, at = _name(tokens, _after(words, 2, "IF", "NOT", "EXISTS"))
    if at < len(words) and words[at] == "(":
        at = closing(tokens, at) + 1
    # STRICT and WITHOUT ROWID may follow the columns.
    place = next((index for index in range(at, len(words)) if words[index] == "AS"), None)
    if place is None:
        return DefinitionNeeds(frozenset((CREATES,)))
    start = place + 1
    if words[start] == "INSERT":
        if words[start + 1] != "INTO":
            return _unknown()
        filled, after = _name(tokens, start + 2)
        if filled.lower() != name.lower() or words[after] != "(":
            return _unknown()
        start = closing(tokens, after) + 1
    return DefinitionNeeds(frozenset((CREATES,)), query=sql[tokens[start].start : tokens[-1].end])


def _drop(tokens: Sequence[Token], words: Sequence[str]) -> DefinitionNeeds:
    if words[1] not in ("TABLE", "VIEW", "INDEX", "TRIGGER"):
        return _unknown()
    at = _after(words, 2, "IF", "EXISTS")
    owned: list[tuple[str, str]] = []
    while at < len(tokens):
        if words[at] in ("RESTRICT", "CASCADE") and at + 1 == len(tokens) and owned:
            break
        name, at = _name(tokens, at)
        owned.append((words[1], name))
        if at < len(tokens) and words[at] == ",":
            at += 1
    return DefinitionNeeds(owned=tuple(owned))


def changed_relation(sql: str) -> str:
    """The name after the kind of object in a definition, for the audit log; empty without one. The text itself may have constants."""
    tokens = sqlite_tokens(sql)
    words = [token.text.upper() if token.kind == "word" else token.text for token in tokens[:8]]
    at = next((index + 1 for index, word in enumerate(words) if word in ("TABLE", "VIEW", "INDEX", "TRIGGER")), len(tokens))
    for prefix in (("IF", "NOT", "EXISTS"), ("IF", "EXISTS")):
        at = _after(words, at, *prefix)
    return _name(tokens, at)[0] if at < len(tokens) and tokens[at].kind in ("word", "quoted") else ""
