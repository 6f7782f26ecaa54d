"""The time that one evaluation may take, held by the kernel: C code can't be interrupted otherwise."""

import signal

EVALUATION_SECONDS = 1.0
"""Wall-clock limit of one evaluation (interface specification, "Limits"). It also bounds the memory of a runaway."""


class Deadline:
    """Ends the process by SIGALRM when what runs inside takes too long."""

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, EVALUATION_SECONDS)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
