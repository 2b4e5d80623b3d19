"""Histories of clients of real processes, some of which are killed and stopped; recorded and checked."""
