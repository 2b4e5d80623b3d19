"""What a statement says: PostgreSQL's grammar of queries and changes as a tree with places in the text. Pure."""

from __future__ import annotations

from triplicate.sql.pg.syntax.statement_parser import StatementParser, parse
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood

__all__ = ["NotUnderstood", "StatementParser", "parse"]
