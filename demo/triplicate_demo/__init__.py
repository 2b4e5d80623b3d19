"""The demonstration: real data through every layer, with servers killed on the way."""
