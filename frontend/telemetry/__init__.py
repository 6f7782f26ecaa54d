"""The view of operators on a running front: log lines and counters."""
