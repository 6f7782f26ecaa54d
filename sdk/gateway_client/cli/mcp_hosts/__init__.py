"""The configuration files of agents' hosts, and the entry in them that starts `gatectl mcp`."""
