"""The state of an OPA, as this front knows it; it decides whether a question is asked, waits or fails.

    up        it holds our documents: ask
    unproven  it may not hold them: questions wait, within their own deadlines
    down      it was not reached, was silent, or would not do: questions fail at once

No I/O. A new front begins with `down`. frontend/policy/opa/engine.py changes the state.
"""

import trio

from frontend.errors import GateError
from frontend.telemetry.logs import log

UNAVAILABLE = "policy_engine_unavailable"
TIMEOUT = "policy_engine_timeout"


class OpaState:
    """One of the three."""

    def __init__(self) -> None:
        self._failure: tuple[str, str] | None = (UNAVAILABLE, "no policy is in force yet")
        self._is_proven = False
        self._is_told = False
        self._changed = trio.Event()

    @property
    def is_up(self) -> bool:
        """Questions are put."""
        return self._failure is None and self._is_proven

    @property
    def is_down(self) -> bool:
        """Questions fail at once."""
        return self._failure is not None

    def check(self) -> None:
        """Raise what a question gets while it is down."""
        if self._failure is not None:
            code, cause = self._failure
            raise GateError(code, cause=cause)

    async def until_proven(self) -> None:
        """Return once it is up. Raises GateError as soon as it is down."""
        while not self.is_up:
            self.check()
            await self._changed.wait()

    def prove(self) -> None:
        """It answers, and holds our documents."""
        if self._is_told:
            log.info("the policy engine answers again")
        self._move(None, is_proven=True)
        self._is_told = False

    def doubt(self) -> None:
        """Whether it holds our documents is not known."""
        self._move(None, is_proven=False)

    def fail(self, code: str, cause: str) -> None:
        """OPA is unavailable."""
        if not self._is_told:
            log.warning("the policy engine is down", code=code, cause=cause)
        self._move((code, cause), is_proven=False)
        self._is_told = True

    def end(self) -> None:
        """No more questions are asked."""
        self._move((UNAVAILABLE, "the policy engine stops"), is_proven=False)

    def _move(self, failure: tuple[str, str] | None, *, is_proven: bool) -> None:
        self._failure, self._is_proven = failure, is_proven
        self._changed.set()
        self._changed = trio.Event()
