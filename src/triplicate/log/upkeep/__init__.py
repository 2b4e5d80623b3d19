"""Truncation, orphans, repair, rewriting, snapshots."""
