"""The repair workload: bookies are lost for good, and every ledger gets its full copies again."""
