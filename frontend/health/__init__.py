"""Whether this front's dependencies answer, and what that makes of the whole."""
