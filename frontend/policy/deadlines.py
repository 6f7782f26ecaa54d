"""How long a front waits for its policy engine and for the policy's files. All in seconds.

Holds values only; frontend/compose.py hands them on. What one question may take is fixed by the contract.
"""

from dataclasses import dataclass

from frontend.policy.engine import QUESTION_SECONDS


@dataclass(frozen=True, slots=True)
class OpaDeadlines:
    """The waits of frontend/policy/opa/ beside that, in seconds."""

    look_seconds: float = 1.0
    """For one look at how it stands."""
    round_seconds: float = 1.0
    """Between two looks while all is well."""
    busy_round_seconds: float = 0.25
    """The same while remembered decisions are in use."""
    first_pause_seconds: float = 0.1
    """After a look that failed; doubled with each."""
    longest_pause_seconds: float = 2.0
    least_pause_seconds: float = 0.05
    """Between two looks, whatever asks for one."""
    push_seconds: float = 3.0
    """For the documents to be there."""
    probe_rounds: int = 2
    """Looks from one question of ours to the next while all is well: so often it is asked whether anything is decided
    at all."""


@dataclass(frozen=True, slots=True)
class PolicyDeadlines:
    """The waits of frontend/policy/, in seconds."""

    question_seconds: float = QUESTION_SECONDS
    """For one question."""
    stall_seconds: float = 0.9 * QUESTION_SECONDS
    """A process that has answered nothing for this long when a question runs out of time is given up. A hanging
    evaluation that began later ends by itself: the process has an alarm of its own."""
    late_seconds: float = 0.05
    """A front that notices a deadline later than this stood still itself, and reads what came for as long again."""
    load_seconds: float = 10.0
    """For a policy to compile, a process to come included."""
    first_load_seconds: float = 30.0
    """The same while no policy is in force: no question waits for it, and a whole gateway is starting beside it."""
    successor_seconds: float = 5.0
    """A candidate whose process was lost waits this long for another one."""
    beat_seconds: float = 0.25
    """Between two signs of life while remembered decisions are in use."""
    idle_beat_seconds: float = 1.0
    """The same while none is."""
    quiet_seconds: float = 2.0
    """A process that owes an answer and has given none for this long is shown as not available."""
    silent_seconds: float = 5.0
    """The same until it is given up: a busy machine may keep it waiting for a while."""
    send_seconds: float = 1.0
    """A process that does not read for this long is lost."""
    read_seconds: float = 30.0
    """For the whole policy folder to be read."""
    look_seconds: float = 5.0
    """For one look at a file of it."""
    opa: OpaDeadlines = OpaDeadlines()
