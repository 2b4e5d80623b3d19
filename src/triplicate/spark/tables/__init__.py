"""Tables of databases as source and sink."""
