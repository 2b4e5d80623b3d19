"""The door for clients of Redis: the protocol RESP, versions 2 and 3, over the stores of a node."""
