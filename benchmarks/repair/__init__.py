"""The repair of the copies of a bookie that is lost for good, beside Apache BookKeeper's auto-recovery."""
