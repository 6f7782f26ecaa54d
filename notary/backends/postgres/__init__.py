"""The ledger in a PostgreSQL."""
