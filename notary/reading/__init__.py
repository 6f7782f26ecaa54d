"""What is asked of the ledger: queries, the walk along the chain, the offline check."""
