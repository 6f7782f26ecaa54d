"""Proofs, budgets, approvals and the epoch: what changes."""
