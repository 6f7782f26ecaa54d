"""`gateway dev`: its settings, keys, policy and start."""
