"""The memory that all fronts of a gateway share, its locks, and its layout."""
