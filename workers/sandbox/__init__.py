"""The walls that the operating system builds around a worker, by profile."""
