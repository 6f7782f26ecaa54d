"""Reading the ledger: queries, the walk along the chain, the offline check."""
