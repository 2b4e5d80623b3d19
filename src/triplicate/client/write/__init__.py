"""Writing: the append pipeline, ensemble changes, force, explicit LAC."""
