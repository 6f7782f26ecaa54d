"""How long a front waits while what is in force is replaced, by itself or by other fronts. All in seconds.

Holds values only; frontend/compose.py hands them on. What the supervisor gives to one reload is its own.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigurationDeadlines:
    """The waits of frontend/configuration/, in seconds."""

    read_seconds: float = 30.0
    """For manifests and keys to be read, and again for the registry to be built."""
    prepare_seconds: float = 100.0
    """What a reload may take until it swaps. Less than the supervisor waits, so that it always hears how it went."""
    finish_seconds: float = 125.0
    """For all other fronts to be ready; a little more than the supervisor gives to one reload."""
    settle_seconds: float = 3.0
    """What a reload that has swapped waits for the egress proxy's list, which is at most too wide."""
    follow_seconds: float = 5.0
    """How long a call waits for a change of policy that another front has made."""
    look_again_seconds: float = 0.05
    """Between two looks at whether another front's change has come."""
    others_seconds: float = 1.0
    """From the moment in which another front puts its change on the disk until that is in force here."""
    end_holds_seconds: float = 2.0
    """What the answer to revoke-all waits for the ends of the holds that it has revoked."""
    turn_seconds: float = 15.0
    """How long a change waits for a load, or another change, to end."""
