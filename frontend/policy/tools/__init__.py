"""What `gateway policy` does with a policy: tests it, and explains what it decided."""
