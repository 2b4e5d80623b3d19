"""What a statement says: PostgreSQL's grammar of queries and changes as a tree with places in the text. Pure."""

from __future__ import annotations

from triplicate.sql.pg.syntax.cursor import NotUnderstood
from triplicate.sql.pg.syntax.statements import StatementParser, parse

__all__ = ["NotUnderstood", "StatementParser", "parse"]
