"""One call and when it may be sent again; the agent's calls, their leases and their keys. No I/O."""
