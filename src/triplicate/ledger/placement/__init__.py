"""Placement of ledgers on bookies by failure domain: machine, rack, region."""
