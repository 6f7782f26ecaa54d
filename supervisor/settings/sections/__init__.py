"""Sections of the configuration with kinds of values of their own, a file for each."""
