"""Rounds of the notary between units, a slice at a time."""
