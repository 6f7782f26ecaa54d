"""The one place where the version of this distribution stands."""

__version__ = "0.1.0"
