"""One connection per bookie: requests, answers, and one write per connection and tick of the loop."""
