"""Commands for a gateway that runs, its ledger and its log."""
