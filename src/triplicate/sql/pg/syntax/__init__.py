"""PostgreSQL's grammar of queries and changes: statements become trees, whose nodes know their places in the text. Pure."""
