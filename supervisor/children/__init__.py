"""Child processes: their life, their channels, their descriptors."""
