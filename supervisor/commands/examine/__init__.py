"""Commands that examine a configuration, a policy or the host, and change nothing."""
