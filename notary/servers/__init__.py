"""The servers that a notary may have for its store or its ledger, registered once each."""
