"""Decisions of embedded databases, apart from input and output."""
