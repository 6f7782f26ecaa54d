"""Rules for where effects may go: domain names and file paths."""
