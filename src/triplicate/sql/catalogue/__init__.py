"""PostgreSQL's system catalogue as far as the default connections of client libraries ask for it, answered from SQLite's schema.

Read `typenames` (which types there are), `facts` (what SQLite's schema holds), `relations` (the rows of each catalogue table, pure),
`tables` and `functions` (how a connection gets them). Nothing of it is stored: the tables are virtual, read-only, and exist on every
connection that runs statements of clients. Views and triggers may not use them, so that the schema stays SQLite's own.
"""

from triplicate.sql.catalogue.catalogue_functions import register_functions
from triplicate.sql.catalogue.virtual_tables import register_tables

__all__ = ["register_functions", "register_tables"]
