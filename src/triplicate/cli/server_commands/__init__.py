"""Commands that run servers, or look at them."""
