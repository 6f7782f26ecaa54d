"""How much one front takes: places for calls, and requests a second."""
