"""The store in a Redis, version 6.2 or later. docs/decisions.md, "The store in Redis"."""
