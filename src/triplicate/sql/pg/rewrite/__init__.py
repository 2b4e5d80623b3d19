"""Rewrites statements of client libraries, token by token."""
