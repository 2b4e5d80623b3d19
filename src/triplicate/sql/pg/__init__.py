"""PostgreSQL's wire protocol in front of the engine: so every PostgreSQL client is a client of Triplicate.

Read `wire` (messages), `lexer`, `commands` and `infer` (what must be known of a statement before SQLite sees it), `types` (values),
`statements` and `conversation` (the protocol's rules), `server` (connections).
"""

from triplicate.sql.pg.protocol.server import PostgresServer, ServerLimits

__all__ = ["PostgresServer", "ServerLimits"]
