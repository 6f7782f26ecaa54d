"""Calls that wait for a person: their states, their record, how they are held and how they are settled."""
