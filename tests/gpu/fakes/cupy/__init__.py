"""A framework that is there and does not start."""
raise RuntimeError("this one is broken")
