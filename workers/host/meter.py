"""The remaining host calls of one call, and the effects of those it made.

One meter a call. Guarantees that the I/O budget is counted before anything happens, that every host call is observed
at most once, and that the first failure of the host is remembered: a provider that fails after it failed because of it.
"""

import time
from typing import Final

import msgspec

from ipc.messages.calling import FailureName, HostCallTime, MayHaveRun, Observation, ProviderFailure

MAX_OBSERVATIONS = 1000
"""Beyond this host calls are refused whatever the budget says: observations travel in one frame."""
UPSTREAM, PROXY = "the upstream", "the egress proxy"
"""The peer at fault, in the words of errors."""
_NAMES: Final[dict[str, FailureName]] = {
    "denied": "upstream_denied", "unavailable": "upstream_unreachable", "timeout": "upstream_timeout",
    "too-large": "limit_io",
}  # fmt: skip
"""`kind` of an error -> the name of its failure, where the code that raises it knows none; else provider_failed."""


class HostError(Exception):
    """A host call that did not do what it was asked; reaches the guest as a provider-error.

    `kind` is one of the WIT's. SECURITY: message and details are seen by guest, receipt and log; they never hold a
    secret, an address behind a name, or a path outside the grant.
    """

    def __init__(
        self, kind: str, message: str, *, details: str | None = None, retryable: bool = False,
        name: FailureName | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.failure = ProviderFailure(kind, message, details, retryable)
        self.name: FailureName = name or _NAMES.get(kind, "provider_failed")
        """The failure as the agent hears it."""


class IoBudgetExceeded(Exception):
    """More I/O calls than the action may make: ends the call, whatever the provider would do about it."""


class Meter:
    """Budget, deadline and observations of one call."""

    def __init__(self, max_io_calls: int, deadline: float) -> None:
        """`deadline` is time.monotonic() of the call's end."""
        self.deadline = deadline
        self.io_calls = 0
        self.observations: list[Observation] = []
        self.host_times: list[HostCallTime] = []
        """One for each of them."""
        self._begun = self._charged = time.monotonic()
        self.failure: ProviderFailure | None = None
        self.failure_name: FailureName | None = None
        self.may_have_run: MayHaveRun = "no"
        self.fails_as = "host_io"
        """`Result.outcome` of a call that fails because of the host."""
        self.is_exceeded = False
        self._max_io_calls = min(max_io_calls, MAX_OBSERVATIONS)

    def remaining(self) -> float:
        """Seconds left. Raises HostError timeout at 0."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise HostError("timeout", "the call's time is over", name="limit_time")
        return left

    @property
    def has_more(self) -> bool:
        """True while the call may make another I/O call."""
        return self.io_calls < self._max_io_calls

    def charge(self) -> None:
        """Count one I/O call. Raises IoBudgetExceeded."""
        if not self.has_more:
            self.is_exceeded = True
            raise IoBudgetExceeded
        self.io_calls += 1
        self._charged = time.monotonic()

    def observe(self, observation: Observation) -> None:
        """Keep what the host saw."""
        self.observations.append(observation)
        after, took = self._charged - self._begun, time.monotonic() - self._charged
        self.host_times.append(HostCallTime(int(after * 1e6), int(took * 1e6)))

    def note_resent(self) -> None:
        """The request that was observed last is sent once more."""
        self.observations[-1] = msgspec.structs.replace(self.observations[-1], resent=True)

    def note_failure(self, failure: ProviderFailure, name: FailureName) -> None:
        """Remember the first failure."""
        if self.failure is None:
            self.failure, self.failure_name = failure, name

    def note_sending(self) -> None:
        """The next byte of a request leaves for the upstream, or a file is opened for writing."""
        if self.may_have_run == "no":
            self.may_have_run = "unknown"

    def note_answer(self) -> None:
        """The upstream has answered, or a file was changed."""
        self.may_have_run = "yes"
