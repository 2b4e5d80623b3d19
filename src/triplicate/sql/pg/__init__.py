"""PostgreSQL's wire protocol in front of the engine: every PostgreSQL client is a client of Triplicate.

Each wing imports only the wings before it: `syntax` (tokens to trees), `values` (types, formats and conversions), `analysis` (scopes and
types of expressions), `translate` (trees to SQLite's text), `ddl` (definitions), `rewrite` (queries of client libraries), `protocol`
(messages, plans, conversations, the server). The tokens come from `triplicate.sql.core.lexer`.
"""

from triplicate.sql.pg.protocol.client_connections import ServerLimits
from triplicate.sql.pg.protocol.server import PostgresServer
from triplicate.sql.pg.protocol.server_security import ServerSecurity

__all__ = ["PostgresServer", "ServerLimits", "ServerSecurity"]
