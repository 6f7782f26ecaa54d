"""The witnesses of one front: a follower for each that is configured. Only the first front has followers."""

import trio

from frontend.deadlines import WitnessDeadlines
from frontend.notary.client import NotaryClient
from frontend.telemetry.metrics import Metrics
from frontend.witnesses.follower import Follower, FollowerContext
from frontend.witnesses.reply import OUTCOMES, WitnessRequests
from ipc.settings import Settings, WitnessSettings


class Witnesses:
    """Has checkpoints cosigned by the witnesses of a configuration."""

    def __init__(
        self, settings: Settings, notary: NotaryClient, metrics: Metrics,
        deadlines: WitnessDeadlines = WitnessDeadlines(), *, is_followed: bool = True,
    ) -> None:  # fmt: skip
        """`is_followed` False: another front does it."""
        rows = settings.evidence.witnesses
        metrics.knows_witnesses([row.name for row in rows], OUTCOMES)
        means = FollowerContext(notary, metrics, settings.evidence.witness_interval_seconds, deadlines)
        self._followers = [Follower(row.name, _submission_to(row, settings), means) for row in rows if is_followed]

    async def run(self) -> None:
        """Follow them, until cancelled; without witnesses there is nothing to do."""
        async with trio.open_nursery() as nursery:
            for follower in self._followers:
                nursery.start_soon(follower.run)


def _submission_to(witness: WitnessSettings, settings: Settings) -> WitnessRequests:
    from frontend.witnesses.submission import open_submission

    return open_submission(settings.version, settings.egress.unsafe_resolve, witness)
