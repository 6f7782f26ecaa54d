"""The built-in providers as components, named by SHA256SUMS; their sources are in src/. Holds no code."""
