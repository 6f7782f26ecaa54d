"""The only path that runs a provider, for allowed and for approved calls alike.

secrets -> worker -> attempt (frontend/calls/attempt.py) -> answer; with another worker if the first one ended before it
began the call. Guarantees: a worker runs the plan on the notary's permit alone, which it gives once the intent is
durable; the answer agrees with the evidence; a call that the end of this process cuts leaves its receipt, or, if no
worker has begun it, is resolved and given back. Never decides whether a plan may run.
"""

from collections.abc import Callable
from contextlib import suppress

import msgspec
import trio

from frontend.actions.networks import are_in_force
from frontend.calls.asking import opening_of
from frontend.calls.attempt import CUT, Attempt
from frontend.calls.executed import ExecutedCall
from frontend.calls.plan_secrets import PlanSecrets
from frontend.calls.record import CallRecord
from frontend.calls.reserving import Reservation
from frontend.calls.withdrawing import withdraw
from frontend.deadlines import CallDeadlines
from frontend.errors import CallFailed, GateError
from frontend.notary.client import NotaryClient
from frontend.pool.pool import Pools
from frontend.secrets.files import SecretMissing
from frontend.telemetry.metrics import Metrics
from ipc.limits import AHEAD_BYTES
from ipc.operations.calls import Approver, Open, Unbegun
from ipc.plan import Plan, SealedPlan
from ipc.settings import Settings


class Execution(msgspec.Struct, frozen=True):
    """Runs plans. One instance serves every call of this front."""

    notary: NotaryClient
    secrets: PlanSecrets
    pools: Pools
    worker_wait_seconds: float
    metrics: Metrics
    epoch_now: Callable[[bool], int]
    """The epoch in force as far as this front has heard; True: it first reads all that has arrived from the notary."""
    is_proxy_down: Callable[[], bool]
    """True if there is an egress proxy and it did not answer the last check."""
    settings_now: Callable[[], Settings]
    """Those in force."""
    deadlines: CallDeadlines = CallDeadlines()

    async def run(
        self, record: CallRecord, sealed: SealedPlan, *, has_budget: bool, approver: Approver | None = None
    ) -> ExecutedCall:
        """Execute the plan once.

        Raises GateError; `record.is_decided` says whether the event of that is written. After dispatch it can only be
        evidence_persistence_failed: then the intent stays unresolved and shows.
        """
        plan = sealed.plan
        opened: Open | None = None
        self._check_way(plan)
        try:
            secrets = await self.secrets.values_of(plan)
        except SecretMissing as error:
            raise CallFailed("secret_missing", str(error)) from None
        try:
            for _ in range(self.deadlines.max_workers):
                async with self._reserved(sealed, is_open=opened is not None) as worker:
                    self._check_epoch(plan, approver, hears=opened is not None)
                    self._check_networks(plan, approver)
                    opening = opened or opening_of(record, sealed, worker.worker_id, has_budget, approver)
                    renewal = self.secrets.renewal(plan, secrets)
                    ended = await Attempt(
                        self.notary, self.pools, self.metrics, self.deadlines.clean_up_seconds, record, sealed, secrets,
                        self.secrets.note_refused, renewal, worker, opening, is_open=opened is not None,
                    ).run()  # fmt: skip
                if isinstance(ended, ExecutedCall):
                    return ended
                if isinstance(ended, Unbegun):
                    opened = opening
            cause = f"{self.deadlines.max_workers} workers ended before they began a call"
            raise GateError("overloaded", cause=cause)
        except (GateError, trio.Cancelled) as error:
            if opened is not None and not record.is_decided and not record.is_dispatched and record.unheard is None:
                told = error if isinstance(error, GateError) else GateError("draining", cause=CUT)
                await self._withdraw(record, opened, told)
            raise

    async def check(self, plan: Plan) -> None:
        """Raise the GateError of a plan that can't be dispatched now, through no fault of its own: a caller that checks
        first loses nothing by trying again."""
        self._check_way(plan)
        with suppress(SecretMissing):  # that is the plan's own fault, and ends it
            await self.secrets.values_of(plan)

    async def finish(self, record: CallRecord, error: GateError) -> None:
        """Wait for the withdrawal of a call whose caller already has its answer. Raises nothing."""
        if record.unheard is not None:
            await self._withdraw(record, record.unheard, error)

    def _check_way(self, plan: Plan) -> None:
        """A proxy that hangs must not hold a worker for as long as each call may take."""
        if plan.egress.proxy_url is not None and self.is_proxy_down():
            raise CallFailed("upstream_unreachable", "the egress proxy can't be reached: it answers nothing")

    def _reserved(self, sealed: SealedPlan, *, is_open: bool) -> Reservation:
        """A worker for the call. A small plan may go to a worker that has other calls: beside them in a shared worker,
        behind them in another one if the plan needs no secrets and has no intent yet."""
        plan, is_small = sealed.plan, len(sealed.encoded) < AHEAD_BYTES
        may_wait = is_small and (plan.isolation == "shared" or not (plan.secrets or is_open))
        return Reservation(self.pools, self.metrics, plan, self.worker_wait_seconds, is_patient=may_wait)

    def _check_epoch(self, plan: Plan, approver: Approver | None, *, hears: bool) -> None:
        """SECURITY: a call that has waited for a worker is not dispatched once an operator knows that it is revoked.
        The notary checks the epoch when it opens a call, and not again when the intent passes to another worker: then
        the front first reads (`hears`) all that the notary has said."""
        in_force = self.epoch_now(hears)
        if plan.epoch != in_force:
            code = "invalid_lease" if approver is None else "plan_integrity"
            raise GateError(code, cause=f"epoch {plan.epoch} of the call, {in_force} is in force")

    def _check_networks(self, plan: Plan, approver: Approver | None) -> None:
        """SECURITY: a call that has waited for a token or a worker enters no network that a reload has taken away."""
        if not are_in_force(plan, self.settings_now().egress.networks):
            cause = "the plan's private networks are not the configured ones any more"
            raise CallFailed("upstream_denied", cause) if approver is None else GateError("plan_integrity", cause=cause)

    async def _withdraw(self, record: CallRecord, opened: Open, error: GateError) -> None:
        await withdraw(self.notary, record, opened, error, self.deadlines.clean_up_seconds)
