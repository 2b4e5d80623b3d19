"""Commands on ledgers, logs and databases."""
