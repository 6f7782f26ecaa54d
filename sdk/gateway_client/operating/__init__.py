"""The operator's calls, by what they are about. No I/O."""
