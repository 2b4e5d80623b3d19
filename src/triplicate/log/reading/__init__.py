"""Readers of logs and of ranges of offsets."""
