"""Keys and signatures, and values that must not be seen."""
