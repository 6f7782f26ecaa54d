"""What the fronts of a gateway share without asking each other: one memory, its locks, and who is in it."""
