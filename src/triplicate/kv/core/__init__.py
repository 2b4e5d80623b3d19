"""Decisions, formats and interfaces of key-value stores, without input and output."""
