"""Store, ledger and webhooks as front and notary both know them."""
