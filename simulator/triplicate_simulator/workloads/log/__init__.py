"""Logs under load."""
