"""Rules for where effects may go: domain names in their one normal form."""
