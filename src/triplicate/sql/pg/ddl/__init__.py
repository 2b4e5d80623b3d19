"""CREATE, ALTER and DROP as PostgreSQL's clients write them, in the words of the engine: SQLite's and those of `sql.definitions`."""

from triplicate.sql.pg.ddl.definition_rewriter import RewrittenDefinition, rewrite_definition

__all__ = ["RewrittenDefinition", "rewrite_definition"]
