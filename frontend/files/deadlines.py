"""How long a front waits to change a file that others change too. All in seconds.

Holds values only; the code that opens such a file hands them on.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileDeadlines:
    """The waits of frontend/files/exclusive.py, in seconds."""

    turn_seconds: float = 10.0
    """For the turn to come: twice at most, among this front's own tasks and among fronts."""
    write_seconds: float = 10.0
    """For a change to be on the disk."""
    look_again_seconds: float = 0.01
    """Between two looks at whether the turn has come."""
