"""Staging ledgers and publishing them as segments."""
