"""Webhooks: what happened, told to the endpoints that were configured, signed and at least once."""
