"""The tools of `gateway policy`: they test a policy and explain its decisions."""
