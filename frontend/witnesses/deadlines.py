"""How long a front leaves a witness alone that has not cosigned, and how often it says so.

Holds values only; frontend/compose.py hands them on. How often a witness is asked, and how long one request may take,
are settings.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WitnessDeadlines:
    """The waits of frontend/witnesses/."""

    most_intervals: float = 30.0
    """The longest pause after failures, in intervals of the configuration: it doubles with each failure until then."""
    say_again_seconds: float = 60.0
    """Between two lines about one witness whose trouble changes."""
