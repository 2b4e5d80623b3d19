"""Things that are deleted and made again under their name while operations hang, for all workloads."""
