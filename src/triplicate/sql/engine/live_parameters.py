"""The live tables that a query in SQLite's dialect reads: `triplicate_nodes` becomes `triplicate_nodes(?3)`, whose value is its rows. Pure.

See `triplicate.sql.catalogue.live_tables`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triplicate.sql.catalogue.live_tables import FUNCTIONS, LIVE_TABLES
from triplicate.sql.core.lexer import Token, sqlite_tokens
from triplicate.sql.pg.rewrite.mutable_token import MutableToken, table_places

_MENTION = re.compile("triplicate_|pg_stat_|pg_locks", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """A query with a parameter for the rows of each live table that it reads."""

    sql: str
    """All of its parameters have numbers, as `triplicate.sql.core.interface.Prepared.parameters` counts those of the text before."""
    tables: tuple[str, ...]
    """Their rows are the parameters behind the query's own."""


def live_query(sql: str, parameters: int) -> LiveQuery | None:
    """Rewrite a query that reads live tables; None for any other.

    Args:
        parameters: the number of its own parameters.
    """
    if _MENTION.search(sql) is None:
        return None
    tokens = sqlite_tokens(sql)
    read = dict(_tables_read(tokens))
    if not read:
        return None
    tables = tuple(dict.fromkeys(read.values()))
    numbers = _Numbers()
    pieces, begin = [], 0
    for index, token in enumerate(tokens):
        if index in read:
            text = f"{token.text}(?{parameters + 1 + tables.index(read[index])})"
        elif token.kind == "parameter":
            # A parameter without a number would follow the highest one before it.
            text = f"?{numbers.of(token.text)}"
        else:
            continue
        pieces += [sql[begin : token.start], text]
        begin = token.end
    return LiveQuery("".join([*pieces, sql[begin:]]), tables)


def _tables_read(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """The index of each token that names a live table, and the table."""
    parts = [MutableToken(token.kind, token.text) for token in tokens]
    places = table_places(parts)
    for index, token in enumerate(tokens):
        name = token.text.strip('"`[]').lower()
        is_table = token.kind in ("word", "quoted") and name in LIVE_TABLES and name not in FUNCTIONS and index in places
        if is_table and (index + 1 == len(parts) or parts[index + 1].text != "("):
            yield index, name


class _Numbers:
    """The numbers of parameters, as SQLite gives them: ``?`` follows the highest number so far, as does the first use of a name."""

    def __init__(self) -> None:
        self._highest = 0
        self._named: dict[str, int] = {}

    def of(self, text: str) -> int:
        """The number of the next parameter in the text."""
        if text[1:].isdigit() and text[0] == "?":
            number = int(text[1:])
        elif text == "?":
            number = self._highest + 1
        else:
            number = self._named.setdefault(text, self._highest + 1)
        self._highest = max(self._highest, number)
        return number
