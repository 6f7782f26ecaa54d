"""Requests and answers as values: addresses, proofs, and how JSON is read. No I/O."""
