"""Checks of a whole configuration against the host, its folders and the rules of production."""
