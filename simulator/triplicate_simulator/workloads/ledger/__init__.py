"""Ledgers under load."""
