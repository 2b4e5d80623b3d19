"""The key-value stores of a node, and their list in the metadata."""
