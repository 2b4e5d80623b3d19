"""The source `triplicate`: logs and ledgers, read and written."""
