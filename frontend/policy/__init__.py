"""Asking the policy engine: questions and decisions, the embedded engine, the files that an operator writes."""
