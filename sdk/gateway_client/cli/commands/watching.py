"""gatectl approvals watch: every new hold, and its outcome.

Sleeps until the next poll or until the first hold expires, whichever is sooner.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import click

from gateway_client.cli.commands.approvals import approvals
from gateway_client.cli.desk import CliContext, Group, pass_desk
from gateway_client.cli.display.output import Output, note
from gateway_client.cli.display.safe import short
from gateway_client.cli.display.times import clock, countdown, left
from gateway_client.cli.views.call_names import named, waiting
from gateway_client.cli.watching.following import Follow
from gateway_client.errors import Conflict, GatewayError, NotFound
from gateway_client.operators import OperatorClient
from gateway_client.results import Approval

MOST = 200
"""The length of one answer's list."""
UNDECIDED = {"pending", "claimed"}


@dataclass(frozen=True, slots=True)
class HoldChange:
    """One hold, and the state that it is in from now on."""

    state: str
    approval: Approval
    target: str = ""


@dataclass(slots=True)
class HoldWatch:
    """The pending holds. `look` returns the changes since the last look."""

    operator: OperatorClient
    pending: dict[str, Approval] = field(default_factory=dict)
    is_full: bool = False

    def look(self) -> list[HoldChange]:
        """Raises GatewayError; what had been found by then is found again by the next look."""
        listed = self.operator.approvals("pending", MOST, group="principal").approvals
        self.is_full = len(listed) == MOST
        now = {one.approval_id: one for one in listed}
        gone = [self._ended(one) for key, one in self.pending.items() if key not in now]
        new = [self._begun(one) for key, one in now.items() if key not in self.pending]
        # Holds in execution, or beyond the newest MOST, stay in the table until they end.
        self.pending = now | {one.approval.approval_id: one.approval for one in gone if one.state in UNDECIDED}
        return [one for one in gone if one.state not in UNDECIDED] + new[::-1]

    def soonest(self) -> float | None:
        """Seconds until the first of them expires; of those that should have by this clock, none is waited for."""
        ends = [end for one in self.pending.values() if (end := left(one.expires_at)) is not None and end > 0]
        return min(ends, default=None)

    def _begun(self, approval: Approval) -> HoldChange:
        try:
            detail = self.operator.approval(approval.approval_id)
        except GatewayError:  # decided by now, or its plan can't be read: the next look tells
            return HoldChange("pending", approval)
        return HoldChange("pending", approval, ", ".join(detail.approved_targets))

    def _ended(self, approval: Approval) -> HoldChange:
        try:
            return HoldChange(self.operator.approval(approval.approval_id).state, approval)
        except NotFound:
            return HoldChange("expired", approval)
        except Conflict:  # there is no whole plan to show
            return HoldChange("failed", approval)


@approvals.command("watch")
@click.option("--interval", type=click.FloatRange(0.2, 60), default=2.0, show_default=True, help="Seconds.")
@click.option("--for", "seconds", type=click.FloatRange(min=0, max=604_800), help="End after so many seconds.")
@pass_desk
def watch(desk: CliContext, interval: float, seconds: float | None) -> None:
    """Follow pending calls: each new hold, and its outcome. Ctrl-C ends it."""
    out = desk.out
    follow = Follow(interval, seconds)
    with desk.operator() as operator:
        seen = HoldWatch(operator)
        is_first = True
        while True:
            changes = follow.ask(seen.look, must=is_first)
            if is_first and not changes and not desk.is_json:
                note("nothing waits; watching")
            is_first = False
            for change in changes or ():
                _tell(out, change)
            if changes and seen.is_full:
                note(f"more than {MOST} wait; the newest {MOST} are followed")
            if not follow.rest(seen.soonest()):
                return


def _tell(out: Output, change: HoldChange) -> None:
    one = change.approval
    if out.is_json:
        out.record({"event": change.state, "approval": dict(one.raw)})
        return
    when = one.created_at or "" if change.state == "pending" else datetime.now(UTC).isoformat()
    called = waiting(one) if change.state == "pending" else named(one.action_id, one.summary)
    parts = [
        clock(when), short(change.state).ljust(8), short(one.approval_id), short(called),
        short(one.risk_level or "-"), short(one.principal or "-"),
    ]  # fmt: skip
    if change.state == "pending":
        parts.append(f"{countdown(one.expires_at)} left")
    out.parts([*parts, short(change.target, 200)] if change.target else parts)


def add_to(_cli: Group) -> None:
    """The command is hung up already, under `approvals`."""
