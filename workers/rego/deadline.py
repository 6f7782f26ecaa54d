"""The time that one evaluation may take, held by the kernel: C code can't be interrupted otherwise.

It is counted in processor time: no evaluation is ended because the machine stood still for a moment. The process that
waits for the verdict has a deadline of its own, in wall time.
"""

import signal

EVALUATION_SECONDS = 1.0
"""Limit of one evaluation (docs/contract.md, "Limits"). It also bounds the memory of a runaway."""
OVERTIME = signal.SIGPROF
"""The signal that ends a process whose evaluation takes longer."""


def be_ended_by_overtime() -> None:
    """Call once in a process that evaluates: its parent may have ignored the signal, or blocked it."""
    signal.signal(OVERTIME, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {OVERTIME})


class Deadline:
    """Ends the process by OVERTIME when what runs inside takes too long."""

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, EVALUATION_SECONDS)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
