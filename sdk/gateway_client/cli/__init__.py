"""gatectl: the command line of operators, and of agents that want to try a call. docs/gatectl.md is its manual."""
