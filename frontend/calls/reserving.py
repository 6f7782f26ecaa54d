"""A worker for one call, as long as the call needs it.

Refuses the call if no worker comes free, and observes how long calls wait. No evidence of a call is written before it
has its worker: it may still end there.
"""

import time
from types import TracebackType

import trio

from frontend.errors import GateError
from frontend.pool.channel import WorkerChannel
from frontend.pool.pool import NoWorker, Pools, WorkerLease
from frontend.telemetry.metrics import Metrics
from ipc.plan import Plan


class Reservation:
    """`async with Reservation(…) as worker`. Raises GateError on entering."""

    __slots__ = ("_lease", "_metrics", "_profile")

    def __init__(self, pools: Pools, metrics: Metrics, plan: Plan, seconds: float, *, is_patient: bool) -> None:
        owners = (f"principal {plan.principal}", f"session {plan.session_id}")
        self._lease: WorkerLease = pools.lease(
            plan.profile, plan.isolation, seconds, owners, is_patient=is_patient, kind=plan.action_id
        )
        self._metrics, self._profile = metrics, plan.profile

    async def __aenter__(self) -> WorkerChannel:
        began = time.perf_counter()
        try:
            worker = await self._lease.__aenter__()
        except NoWorker as error:
            raise GateError("overloaded", cause=str(error)) from None
        finally:
            self._metrics.worker_wait.observe(time.perf_counter() - began, self._profile)
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            self._lease.end()
            raise
        return worker

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lease.end()
