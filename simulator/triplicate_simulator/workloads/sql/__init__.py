"""Databases under load."""
