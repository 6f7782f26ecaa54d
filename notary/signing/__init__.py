"""Signing keys, what they sign, and how another key follows."""
