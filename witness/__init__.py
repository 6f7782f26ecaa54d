"""A witness: remembers how far it has seen logs, and cosigns what continues them (C2SP tlog-witness)."""
