"""Agents and an operator who go on whatever happens: every call has a mark of its own, every answer is kept."""

import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.chaos.world import HOSTS, Timed, World
from tests.support.gateway import ANSWER_SECONDS

AGENTS = 3
CALLS_OF_A_LEASE = 40
BUDGET = 6
AGAIN_SECONDS = 0.02
OPERATOR_SECONDS = 0.1
_MIXED = (
    "digest", "digest", "file", "file", "post", "post", "denied", "held", "failing", "slow", "learned",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """An answer to an agent or to the operator."""

    kind: str
    mark: str
    status: int
    trace_id: str
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """Status and error."""
        return f"{self.status} {self.body.get('error', '')}".strip()


@dataclass
class Seen:
    """Everything that clients saw; appended to by many threads."""

    answers: list[Answer] = field(default_factory=list)
    approved: list[Answer] = field(default_factory=list)
    """Answers of the operator's approvals and denials, by approval id as their mark."""
    budgets: dict[str, int] = field(default_factory=dict)
    """Session -> max_calls."""
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    """Calls without an answer."""
    successes: int = 0
    faults: list[str] = field(default_factory=list)
    """Threads that ended by an error: a fault of the test."""


class Load:
    """Runs until the block ends."""

    def __init__(self, world: World, seen: Seen, seed: int) -> None:
        self._world, self._seen = world, seen
        self._stop = threading.Event()
        self.held: list[str] = []
        """Approvals that the operator has not decided yet."""
        agents = [threading.Thread(target=self._agent, args=(number, seed)) for number in range(AGENTS)]
        self._threads = [*agents, threading.Thread(target=self._operator, args=(seed,))]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * ANSWER_SECONDS)

    # ----------------------------------------------------------------- agents

    def _agent(self, number: int, seed: int) -> None:
        dice, count = random.Random(f"{seed}/{number}"), 0
        try:
            with self._world.http() as http:
                while not self._stop.is_set():
                    count = self._lease(http, dice, number, count)
        except Exception as error:
            self._seen.faults.append(f"agent {number}: {error!r}")

    def _lease(self, http: httpx.Client, dice: random.Random, number: int, count: int) -> int:
        """The calls of one lease: either few of them, to its end, or a mixture of all kinds."""
        has_budget = dice.random() < 0.3
        try:
            agent = self._world.agent(http, BUDGET if has_budget else None)
        except httpx.TransportError:
            agent = None
        if agent is None:
            self._stop.wait(AGAIN_SECONDS)
            return count
        if has_budget:
            self._seen.budgets[agent.session_id] = BUDGET
        for _ in range(CALLS_OF_A_LEASE):
            if self._stop.is_set():
                break
            count += 1
            kind = dice.choice(("digest", "file", "post")) if has_budget else dice.choice(_MIXED)
            answer = self._call(agent, kind, f"n{number}c{count}", dice)
            if answer is None or answer.status >= 500:
                self._stop.wait(AGAIN_SECONDS)
            elif answer.status == 401 or answer.code == "403 budget_exhausted":
                break
        return count

    def _call(self, agent: Timed, kind: str, mark: str, dice: random.Random) -> Answer | None:
        action, body = _asked(kind, mark, dice)
        try:
            answered = agent.execute(action, body)
        except httpx.TransportError:
            self._seen.lost[kind] += 1
            return None
        answer = _kept(kind, mark, answered)
        self._seen.answers.append(answer)
        if answer.status == 200:
            self._seen.successes += 1
        elif answer.status == 202:
            self.held.append(answer.body["approval_id"])
        return answer

    # ----------------------------------------------------------------- operator

    def _operator(self, seed: int) -> None:
        dice = random.Random(f"{seed}/operator")
        try:
            with self._world.http() as http:
                while not self._stop.wait(OPERATOR_SECONDS):
                    try:
                        self._decide(self._world.operator(http), dice)
                    except httpx.TransportError:
                        self._seen.lost["operator"] += 1
        except Exception as error:
            self._seen.faults.append(f"operator: {error!r}")

    def _decide(self, operator: Timed, dice: random.Random) -> None:
        if dice.random() < 0.05:
            answer = operator.get("/v1/audit/checkpoint")
            if answer.status_code == 200:
                self._seen.checkpoints.append(answer.json())
        if not self.held:
            return
        approval_id = self.held.pop(dice.randrange(len(self.held)))
        draw = dice.random()
        verb = "approve" if draw < 0.7 else "deny"
        learn = f"?learn_domain={dice.choice(HOSTS)}" if draw < 0.35 else ""
        # Approving twice is what an operator does who heard nothing; it must do nothing twice.
        for _ in range(2 if draw < 0.5 else 1):
            answered = operator.post(f"/v1/approvals/{approval_id}/{verb}{learn}")
            self._seen.approved.append(_kept(verb, approval_id, answered))
            if answered.status_code == 400:
                learn = ""  # it was no call to that domain


def _asked(kind: str, mark: str, dice: random.Random) -> tuple[str, dict[str, Any]]:
    match kind:
        case "digest":
            return "text_digest", {"text": mark}
        case "file":
            return "file_write", {"path": f"chaos/{mark}", "content": mark}
        case "post":
            return "http_post", {"path": f"chaos/{mark}", "message": mark}
        case "denied":
            return "forbidden_export", {"table": mark}
        case "held":
            return "payment_transfer", {"to": mark, "amount_cents": dice.randint(1, 1000), "currency": "EUR"}
        case "failing":
            return "http_post", {"path": f"status/500?{mark}", "message": mark}
        case "slow":
            return "http_post", {"path": f"slow/{dice.randint(10, 300)}/{mark}", "message": mark}
        case _:
            return "any_host", {"host": dice.choice(HOSTS), "path": mark}


def _kept(kind: str, mark: str, answered: httpx.Response) -> Answer:
    try:
        body = answered.json()
    except json.JSONDecodeError:
        body = {}
    return Answer(kind, mark, answered.status_code, answered.headers.get("x-trace-id", ""), body)


def wait_for_success(world: World, seen: Seen) -> float:
    """Seconds until one more call than now has succeeded. Raises Failed."""
    began, done = time.monotonic(), seen.successes
    world.wait(lambda: seen.successes > done or seen.faults, "a call that succeeds")
    return time.monotonic() - began
