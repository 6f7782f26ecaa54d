"""The deadlines of a front whose clock is the machine's: no answer is late because the machine stood still for a while.

A test whose point is an answer that is late takes these and changes what it is about.
"""

from frontend.deadlines import (
    CallDeadlines,
    ConfigurationDeadlines,
    Deadlines,
    EgressDeadlines,
    FileDeadlines,
    HealthDeadlines,
    OpaDeadlines,
    PolicyDeadlines,
    PoolDeadlines,
)

PATIENCE = 60.0
"""Seconds that a test waits for what must come."""

PATIENT = Deadlines(
    calls=CallDeadlines(settle_seconds=PATIENCE),
    configuration=ConfigurationDeadlines(
        settle_seconds=PATIENCE, follow_seconds=PATIENCE, end_holds_seconds=PATIENCE, turn_seconds=PATIENCE
    ),
    egress=EgressDeadlines(ask_seconds=PATIENCE),
    files=FileDeadlines(turn_seconds=PATIENCE, write_seconds=PATIENCE),
    health=HealthDeadlines(overdue_seconds=PATIENCE),
    policy=PolicyDeadlines(
        question_seconds=PATIENCE, stall_seconds=PATIENCE, load_seconds=PATIENCE, first_load_seconds=PATIENCE,
        successor_seconds=PATIENCE, send_seconds=PATIENCE, quiet_seconds=PATIENCE, silent_seconds=PATIENCE,
        opa=OpaDeadlines(look_seconds=PATIENCE, push_seconds=PATIENCE),
    ),
    pool=PoolDeadlines(
        greeting_seconds=PATIENCE, grace_seconds=PATIENCE, give_seconds=PATIENCE, ask_seconds=PATIENCE,
        leave_seconds=PATIENCE,
    ),
)  # fmt: skip
