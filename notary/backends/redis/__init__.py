"""The store in a Redis, version 6.2 or later. docs/decisions/backends.md, "The store in Redis"."""
