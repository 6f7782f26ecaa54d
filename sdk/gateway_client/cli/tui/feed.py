"""The desk's questions to its gateway: one thread that asks in rounds, and a short thread for each request of a person.

Guarantees that what is kept is bounded, that a gateway which is away is asked again until it answers, and that nothing
here waits for a thread: closing the operator's client ends what they wait for.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.cli.paging import by_principal
from gateway_client.cli.tui.pools import Pool, pools_of
from gateway_client.cli.watching.tailing import Tail
from gateway_client.errors import GatewayError, ProtocolViolation
from gateway_client.operators import OperatorClient
from gateway_client.results import Approval, AuditEvent, EventFilter, SessionPage, Status

MOST_HOLDS = 200
"""The length of one answer's list."""
MOST_SESSIONS = 200
MOST_EVENTS = 500
"""Kept on screen; a round asks for as many at most."""
LONGEST_PAUSE = 5.0
"""Seconds between two rounds while the gateway is away: a person waits at the screen."""


@dataclass(frozen=True, slots=True)
class News:
    """The answers of one round; None for a question that it did not reach. `problem`: why it ended early."""

    status: Status | None = None
    holds: tuple[Approval, ...] | None = None
    total: int | None = None
    events: tuple[AuditEvent, ...] = ()
    """Those that were not told before, oldest first."""
    pools: tuple[Pool, ...] | None = None
    sessions: SessionPage | None = None
    problem: GatewayError | None = None


class Feed:
    """Rounds of questions, told one by one. `wants_pools`, `wants_sessions`: whether the screen shows the
    workers, or the sessions."""

    def __init__(self, operator: OperatorClient, interval: float, tell: Callable[[News], object]) -> None:
        self._operator = operator
        self._interval = interval
        self._tell = tell
        self._tail = Tail(EventFilter())
        self._wake = threading.Event()
        self._is_over = False
        self._failures = 0
        self.wants_pools = self.wants_sessions = False

    def start(self) -> None:
        """Ask from now on."""
        threading.Thread(target=self._run, name="feed", daemon=True).start()

    def hurry(self) -> None:
        """The next round now."""
        self._wake.set()

    def stop(self) -> None:
        """No further round."""
        self._is_over = True
        self._wake.set()

    def look(self) -> News:
        """One round. Raises nothing of the gateway's."""
        status = holds = total = pools = sessions = None
        events: tuple[AuditEvent, ...] = ()
        try:
            status = self._operator.status()
            page = self._operator.approvals("pending", MOST_HOLDS, group="principal")
            holds, total = tuple(by_principal(page.approvals[:MOST_HOLDS])), page.total
            events = tuple(self._tail.fresh(self._operator.events(self._tail.next_filter(), MOST_EVENTS).events))
            if self.wants_pools:
                pools = pools_of(self._operator.metrics())
            if self.wants_sessions:
                sessions = self._operator.sessions(limit=MOST_SESSIONS)
        except GatewayError as error:
            return News(status, holds, total, events, pools, sessions, error)
        except ValueError as error:  # malformed times
            return News(status, holds, total, events, pools, sessions, ProtocolViolation(str(error)))
        return News(status, holds, total, events, pools, sessions)

    def _run(self) -> None:
        while not self._is_over:
            news = self.look()
            if self._is_over:
                return
            self._tell(news)
            self._wake.wait(self._pause(news.problem))
            self._wake.clear()

    def _pause(self, problem: GatewayError | None) -> float:
        if problem is None:
            self._failures = 0
            return self._interval
        self._failures = min(self._failures + 1, 8)
        pause = problem.retry_after or 0.5 * 2**self._failures
        return max(self._interval, min(pause, LONGEST_PAUSE))


def errand(task: Callable[[], Any], tell: Callable[[Any], object]) -> None:
    """Do this beside everything else; `tell` gets its result, or the GatewayError or Failure that it raised."""

    def run() -> None:
        try:
            outcome = task()
        except (GatewayError, Failure) as error:
            outcome = error
        except Exception as error:  # a thread that ended silently would be waited for
            outcome = Failure(ScriptExit.FAILED, "failed", f"{type(error).__name__}: {error}")
        tell(outcome)

    threading.Thread(target=run, name="errand", daemon=True).start()
