"""Clients that repeat each transfer under its key until they know its outcome, and how often the bank may have it.

Guarantees that each transfer has an end: the clock goes past the time in which a lost call may still end.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gateway_client import (
    ActionFailed,
    Address,
    AgentClient,
    AlreadyExecuted,
    ApprovalEnded,
    Clock,
    Denied,
    GatewayError,
    Held,
    OutcomeUnknown,
)

from tests.chaos.world import MOST_SECONDS, World
from tests.support.gateway import ANSWER_SECONDS

CLIENTS = 2
ATTEMPT_SECONDS = 20.0
"""For one call of the library, which repeats by itself within it."""
PAUSE_SECONDS = 0.1
LONGEST_CALL = 400.0
"""Seconds after which a call of the world's actions that has no end can't get one."""
COUNTS = {
    "executed": (1, 1), "denied": (0, 0), "expired": (0, 0), "unknown": (0, 1), "failed": (0, 1), "held": (0, 1),
}  # fmt: skip
"""How often the bank has a transfer, at least and at most, by what its client heard last."""


@dataclass
class Heard:
    """The outcome of each transfer as its client heard it, by its mark."""

    ends: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def problems(self, effects: Counter[str]) -> Iterator[str]:
        """Each transfer that the bank has too often or not often enough."""
        yield from self.faults
        for mark, end in self.ends.items():
            least, most = COUNTS[end]
            if not least <= effects[mark] <= most:
                yield f"the bank has the transfer {mark} {effects[mark]} times, its client heard: {end}"


class Transfers:
    """Runs until the block ends, and then until each transfer that has begun has its end."""

    def __init__(self, world: World, heard: Heard, held: list[str]) -> None:
        """`held`: approvals that the operator of the load decides."""
        self._world, self._heard, self._held = world, heard, held
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(ATTEMPT_SECONDS)
        if any(thread.is_alive() for thread in self._threads):
            self._world.clock.step(LONGEST_CALL)
        for thread in self._threads:
            thread.join(MOST_SECONDS + ANSWER_SECONDS)
            if thread.is_alive():
                self._heard.faults.append("a transfer has no end")

    def _client(self, number: int) -> None:
        ready, count = self._world.ready, 0
        address = Address.parse(ready["base_url"], ready["public_base_url"])
        try:
            with AgentClient(address, clock=Clock(now=self._world.clock.now)) as agent:
                while not self._stop.is_set():
                    count += 1
                    mark = f"k{number}c{count}"
                    self._heard.ends[mark] = self._transfer(agent, mark, needs_approval=count % 8 == 0)
        except Exception as error:
            self._heard.faults.append(f"client {number}: {error!r}")

    def _transfer(self, agent: AgentClient, mark: str, *, needs_approval: bool) -> str:
        """The outcome of one transfer, asked for until it is known."""
        action, request = "http_post", dict[str, Any](path=f"keyed/{mark}", message=mark)
        if needs_approval:
            action, request = "payment_transfer", dict[str, Any](to=mark, amount_cents=1, currency="EUR")
        known: set[str] = set()
        while True:
            try:
                done = agent.execute(action, request, idempotency_key=mark, timeout=ATTEMPT_SECONDS)
            except GatewayError as error:
                end = _end_of(error)
                if end is not None:
                    return end
            else:
                if not isinstance(done, Held):
                    return "executed"
                if done.approval_id not in known:
                    known.add(done.approval_id)
                    self._held.append(done.approval_id)
                if self._stop.is_set():
                    return "held"
            threading.Event().wait(PAUSE_SECONDS)


def _end_of(error: GatewayError) -> str | None:
    """The outcome that an error tells; None if it tells none."""
    match error:
        case AlreadyExecuted():
            return "executed"
        case OutcomeUnknown(code="outcome_unknown"):
            return "unknown"
        case ActionFailed() if error.effect != "no":
            return "failed"
        case Denied(code="policy_denied"):
            return "denied"
        case ApprovalEnded():
            return "expired"
    return None
