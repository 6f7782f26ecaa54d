"""Programs beside a notary: what an operator runs on its files."""
