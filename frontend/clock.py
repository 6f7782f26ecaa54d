"""The clock of the front: that of ipc/process/clock.py, whose error is an answer of the interface (503
`clock_error`)."""

from frontend.errors import GateError
from ipc.process import clock
from ipc.process.clock import STEP_TOLERANCE_SECONDS, TimeSource, iso, parse_iso

__all__ = ["STEP_TOLERANCE_SECONDS", "ClockError", "FrontClock", "TimeSource", "iso", "parse_iso"]


class ClockError(GateError):
    """The wall clock contradicts what is known; no time can be told. Wherever it is not caught it answers 503."""

    def __init__(self, cause: str, until: float | None = None) -> None:
        super().__init__("clock_error", cause=cause)
        self.until = until

    def __str__(self) -> str:
        return str(self.cause)


class FrontClock(clock.SystemClock):
    """As in ipc/process/clock.py, with errors of the interface."""

    def now(self) -> float:
        """Unix seconds. Raises ClockError."""
        try:
            return super().now()
        except clock.ClockWrong as error:
            raise ClockError(str(error), error.until) from None
