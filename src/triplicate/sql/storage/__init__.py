"""The local SQLite file of one copy of a database, and how the log is applied to it."""
