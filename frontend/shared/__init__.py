"""State that the fronts of a gateway share without asking each other: one memory, its locks, and the fronts in it."""
