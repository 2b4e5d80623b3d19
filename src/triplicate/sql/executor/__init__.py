"""Statements run on SQLite connections: blocking, on worker threads."""
