"""Sealed segments: the oldest part of a ledger, moved to a file of its own."""
