"""Evidence: canonical bytes, signed receipts, grants, and the ledger that keeps the chain of audit events."""
