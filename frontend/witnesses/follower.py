"""Keeps one witness up to date: takes the newest checkpoint to it, and its cosignature to the notary.

Guarantees: at most one request at a time and one round an interval, each for the newest checkpoint; a dead, slow or
wrong witness delays only its own rounds, which become rare; no failure ends the follower. Checks no signature itself:
the notary checks every cosignature.
"""

from math import inf
from typing import Final

import msgspec
import trio

from frontend.clock import ClockError
from frontend.deadlines import WitnessDeadlines
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from frontend.witnesses.reply import COSIGNED, INCONSISTENT, INVALID, NotCosigned, WitnessRequests, judged
from ipc.operations.witnesses import Cosign, NextCheckpoint, NoteTrouble, ToCosign

MAX_REQUESTS: Final = 3
"""The most requests of one round: a witness answers the first with the size it knows, and may cosign another
checkpoint meanwhile."""
_UNSTEADY: Final = NotCosigned(INVALID, "it names another size each time it is asked")


class FollowerContext(msgspec.Struct, frozen=True):
    """The resources that all followers of a front share."""

    notary: NotaryClient
    metrics: Metrics
    interval_seconds: float
    deadlines: WitnessDeadlines


class Follower:
    """Follows one witness for as long as it runs."""

    def __init__(self, name: str, submission: WitnessRequests, means: FollowerContext) -> None:
        self._name = name
        self._submission = submission
        self._means = means
        self._failures = 0
        self._said = ""
        self._say_at = -inf

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._round()
            await trio.sleep(self._pause())

    def _pause(self) -> float:
        most = self._means.deadlines.most_intervals
        return self._means.interval_seconds * min(2.0 ** min(self._failures, 32), most)

    async def _round(self) -> None:
        """Have it cosign the newest checkpoint, if it has not. Never raises."""
        try:
            asked = await self._means.notary.ask(NextCheckpoint(self._name))
            if asked is not None:
                await self._follow(await self._cosigned(asked))
        except (NotaryUnavailable, NotaryRefused, ClockError):
            return  # health checks of the ledger report it
        except Exception as error:
            log.error("a witness could not be followed", witness=self._name, why=type(error).__name__)

    async def _cosigned(self, asked: ToCosign) -> NotCosigned | None:
        """None once the notary has a cosignature that holds."""
        for _ in range(MAX_REQUESTS):
            reply = await self._submission.submit(asked)
            verdict = judged(reply, asked)
            if verdict is not None:
                return verdict
            if reply.told is None:
                problem = await self._means.notary.ask(Cosign(self._name, asked.size, reply.lines))
                return None if problem is None else NotCosigned(INVALID, problem)
            newer = await self._means.notary.ask(NextCheckpoint(self._name, reply.told))
            if newer is None:
                return None
            asked = newer
        return _UNSTEADY

    async def _follow(self, verdict: NotCosigned | None) -> None:
        self._means.metrics.witness_requests.add(self._name, COSIGNED if verdict is None else verdict.outcome)
        if verdict is None:
            if self._failures:
                log.info("a witness cosigns again", witness=self._name)
            self._failures, self._said, self._say_at = 0, "", -inf
            return
        self._failures += 1
        now = trio.current_time()
        if verdict.problem != self._said and now >= self._say_at:
            self._said, self._say_at = verdict.problem, now + self._means.deadlines.say_again_seconds
            say = log.error if verdict.outcome == INCONSISTENT else log.warning
            say("a witness has not cosigned", witness=self._name, outcome=verdict.outcome, problem=verdict.problem)
        await self._means.notary.ask(NoteTrouble(self._name, verdict.problem))
