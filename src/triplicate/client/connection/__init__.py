"""One connection per bookie: requests, answers, and one write per connection and turn of the loop."""
