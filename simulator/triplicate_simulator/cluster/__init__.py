"""Simulated clusters: their plan, their bookies and nodes, the context of a run."""
