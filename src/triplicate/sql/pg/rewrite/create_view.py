"""CREATE VIEW: the query is stored in SQLite's words, with PostgreSQL's meaning, and the types of its columns in a comment. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, quote, statement_of
from triplicate.sql.core.view_columns import has_types, types_comment
from triplicate.sql.pg.ddl.parts import at, closing, past_words, refuse, split
from triplicate.sql.pg.translate.target_context import TargetContext
from triplicate.sql.pg.translate.translation import ColumnsByTable, KeysByTable, translate


@dataclass(frozen=True, slots=True)
class CreateView:
    """The parts of a CREATE VIEW. `head` is the text before the columns. `columns` are the names that it gives to the first columns."""

    head: str
    columns: tuple[str, ...]
    query: Statement

    @property
    def queries(self) -> tuple[Statement, ...]:
        return (self.query,)

    def stored(self, tables: ColumnsByTable, keys: KeysByTable | None) -> str | None:
        """The statement for SQLite; None if the grammar does not cover the query, which then is in SQLite's words.

        Args:
            tables, keys: of the tables that the query names, as for `translate`.

        Raises:
            SqlError: 42P02 for a parameter, 0A000 for a value of the session, 42P16 for more names than columns, 42701 for two columns
                with one name; and as `translate`.
        """
        translation = translate(self.query, tables, (), keys, TargetContext.VIEW)
        if not translation.is_understood:
            return None
        if translation.parameter_oids:
            raise SqlError("42P02", "there is no parameter $1 in a view", hint="Write the value into the query.")
        if translation.supplied:
            raise refuse("a value of the session in a view", "compare with it where the view is used")
        if translation.outputs is None:
            named = f"({', '.join(map(quote, self.columns))})" if self.columns else ""
            return f"{self.head}{named} AS {translation.sql}"
        names = self._names([name for name, _ in translation.outputs])
        return f"{self.head}({', '.join(map(quote, names))}) AS {types_comment(translation.view_types)} {translation.sql}"

    def _names(self, outputs: Sequence[str]) -> list[str]:
        if len(self.columns) > len(outputs):
            raise SqlError("42601", "CREATE VIEW specifies more column names than columns")
        names = [*self.columns, *outputs[len(self.columns) :]]
        seen: set[str] = set()
        for name in names:
            if name.lower() in seen:
                raise SqlError("42701", f'column "{name}" specified more than once')
            seen.add(name.lower())
        return names


def view_query(statement: Statement) -> CreateView | None:
    """The parts of a CREATE VIEW; None for any other statement, and for one whose query is already in SQLite's words."""
    sql, tokens = statement.sql, statement.tokens
    kind = past_words(tokens, 1, "OR", "REPLACE")
    if at(tokens, 0).upper != "CREATE" or at(tokens, kind).upper != "VIEW" or has_types(sql):
        return None
    name = past_words(tokens, kind + 1, "IF", "NOT", "EXISTS")
    if_absent = " IF NOT EXISTS" if name > kind + 1 else ""
    name += 2 if at(tokens, name + 1).text == "." else 0
    names = name + 1
    stop = closing(tokens, names) + 1 if at(tokens, names).text == "(" else names
    if at(tokens, name).name is None or at(tokens, stop).upper != "AS" or stop + 1 >= len(tokens):
        return None
    parts = split(tokens[names + 1 : stop - 1]) if stop > names else []
    listed = tuple(part[0].name or "" for part in parts if len(part) == 1)
    if len(listed) < len(parts):
        return None
    return CreateView(f"CREATE VIEW{if_absent} {tokens[name].text}", listed, statement_of(sql[tokens[stop + 1].start : tokens[-1].end]))
