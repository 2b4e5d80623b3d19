"""Tools for a bookie that does not run: inspection, rebuild of the index, replacement."""
