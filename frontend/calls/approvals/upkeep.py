"""Background work on approvals: expiry, and claims that no task settles.

One task, a round a second. Each duty is tried in every round, even if another one fails: no failure of notary or
clock, and no record, ends it. The log has a failure that lasts once.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable

import msgspec
import trio

from frontend.calls.approvals.expiry import Expiry
from frontend.calls.approvals.recovery import Recovery
from frontend.calls.approvals.rights import LostRights
from frontend.deadlines import CallDeadlines
from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.telemetry.logs import log
from ipc.process.lasting_problem import LastingProblem


class HoldUpkeep(msgspec.Struct, frozen=True):
    """Looks after the approvals of one front."""

    expiry: Expiry
    recovery: Recovery
    rights: LostRights
    deadlines: CallDeadlines = CallDeadlines()
    problems: defaultdict[str, LastingProblem] = msgspec.field(default_factory=lambda: defaultdict(LastingProblem))
    """By complaint."""

    async def at_start(self, live_fronts: tuple[str, ...]) -> None:
        """End what fronts that are gone left behind. Raises NotaryUnavailable, NotaryRefused, GateError."""
        await self.recovery.at_start(live_fronts)

    async def run(self) -> None:
        """Round after round, until cancelled."""
        while True:
            await self.round()
            await trio.sleep(self.deadlines.upkeep_seconds)

    async def round(self) -> None:
        """Every duty once. Raises nothing."""
        await self._do("calls held under revoked rights could not be ended", self.rights.end_due)
        await self._do("holds could not be expired", self.expiry.expire)
        await self._do("claims could not be ended", self.recovery.of_own)

    async def _do(self, complaint: str, duty: Callable[[], Awaitable[object]]) -> None:
        problem = self.problems[complaint]
        try:
            await duty()
        except (NotaryUnavailable, NotaryRefused) as error:
            if problem.is_new(str(error)):
                log.warning(complaint, cause=str(error))
        except GateError as error:
            if problem.is_new(f"{error.code} {error.cause}"):
                log.warning(complaint, code=error.code, cause=error.cause)
        except Exception as error:
            if problem.is_new(repr(error)):
                log.exception(complaint)
        else:
            problem.end()
