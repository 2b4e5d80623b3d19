"""A log's head in the metadata, and the ports to its ledgers."""
