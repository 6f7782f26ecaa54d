"""Stores: the key-value interface, its backends, and the one way in which blocking stores serve an async front."""
