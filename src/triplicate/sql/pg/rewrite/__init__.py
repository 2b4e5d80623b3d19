"""Statements of client libraries, rewritten over their tokens."""
