"""CREATE, ALTER and DROP as PostgreSQL's clients write them, in the words of the engine: SQLite's and those of `sql.definitions`."""

from .statements import Definition, rewrite_definition

__all__ = ["Definition", "rewrite_definition"]
