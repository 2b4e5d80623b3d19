"""An operator's view of a whole cluster: the facts, their problems, and one screen."""
