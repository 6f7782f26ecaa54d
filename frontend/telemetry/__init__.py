"""What operators see of the running front: log lines and counters."""
