"""Calls that wait for a person: list, show, approve, deny.

Guarantees that what is approved is what was shown: the approval names one stored plan, and the answer's hash is held
against the hash that was shown.
"""

import click

from gateway_client.cli.completing import held
from gateway_client.cli.desk import Desk, Group, noun, pass_desk
from gateway_client.cli.exits import Exit, Failure
from gateway_client.cli.output import note
from gateway_client.cli.plan_view import PlanView
from gateway_client.cli.results_view import ended, show_executed
from gateway_client.cli.safe import safe
from gateway_client.cli.times import countdown
from gateway_client.errors import GatewayError, NotFound
from gateway_client.operator_results import ApprovalDetail
from gateway_client.operators import OperatorClient

STATES = ("pending", "claimed", "approved", "denied", "failed")
LONGEST = 600.0
"""Seconds for an approved call: an action may take its time, and nobody should have to guess what came of it."""
approvals = noun("approvals", "Calls that wait for a person.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(approvals)


@approvals.command("list")
@click.option("--status", type=click.Choice(STATES), help="Only these; all of the last 24 hours without it.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="The newest so many.")
@pass_desk
def list_(desk: Desk, status: str | None = None, limit: int = 50) -> None:
    """List approvals, newest first."""
    with desk.operator() as operator:
        page = operator.approvals(status, limit)
    if desk.is_json:
        desk.out.document(page.raw)
        return
    rows = [
        (
            one.approval_id, one.state, one.action_id, one.risk_level, one.principal,
            countdown(one.expires_at) if one.state == "pending" else "-", one.created_at,
        )
        for one in page.approvals
    ]  # fmt: skip
    columns = ("APPROVAL", "STATE", "ACTION", "RISK", "ASKED BY", "LEFT", "CREATED")
    desk.out.table(columns, rows, "nothing waits" if status == "pending" else "no approvals")
    if len(rows) == limit:
        note(f"these are the newest {limit}; there may be more (--limit)")


@approvals.command("show")
@click.argument("approval_id", shell_complete=held)
@click.option("--full", is_flag=True, help="However long it is.")
@pass_desk
def show(desk: Desk, approval_id: str, full: bool) -> None:
    """Show what will happen when it is approved, who asks, and what proves it."""
    with desk.operator() as operator:
        detail = operator.approval(approval_id)
        if desk.is_json:
            desk.out.document(detail.raw)
            return
        view = PlanView(detail, full)
    view.show(desk.out)
    if detail.state == "pending":
        desk.out.line(view.commands())


@approvals.command("approve")
@click.argument("approval_id", shell_complete=held)
@click.option("--learn-domain", metavar="DOMAIN", help="Let the action reach it from now on, if this call goes well.")
@click.option("--learn-path", metavar="PATTERN", help="The same for a path.")
@click.option("--full", is_flag=True, help="Show the plan however long it is.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask; needed where there is no terminal.")
@pass_desk
def approve(
    desk: Desk, approval_id: str, learn_domain: str | None, learn_path: str | None, full: bool, yes: bool
) -> None:
    """Show what will happen, ask once, and let it happen."""
    with desk.operator(execute_timeout=LONGEST) as operator:
        detail = _undecided(operator, approval_id)
        view = PlanView(detail, full)
        if not desk.is_json:
            view.show(desk.out)
        desk.confirm(_question(detail, view, learn_domain, learn_path), yes)
        try:
            done = operator.approve(approval_id, learn_domain, learn_path)
        except NotFound:
            raise _lost(operator, approval_id) from None
    if desk.is_json:
        desk.out.document(done.raw)
    else:
        show_executed(desk.out, done)
    if done.approval is None or done.approval.approval_hash != detail.plan_hash:
        raise Failure(
            Exit.VERIFICATION_FAILED, "plan_mismatch", "the gateway executed another plan than the one shown",
            f"gatectl audit events --trace-id {done.trace_id}",
        )  # fmt: skip
    ended(done)


@approvals.command("deny")
@click.argument("approval_id", shell_complete=held)
@click.option("--reason", metavar="TEXT", help="What the agent reads; at most 500 characters.")
@pass_desk
def deny(desk: Desk, approval_id: str, reason: str | None) -> None:
    """End a held call without running it."""
    with desk.operator() as operator:
        try:
            denial = operator.deny(approval_id, reason)
        except NotFound:
            raise _lost(operator, approval_id) from None
    if desk.is_json:
        desk.out.document(denial.raw)
        return
    why = f": {safe(denial.deny_reason)}" if denial.deny_reason else ""
    desk.out.line(f"denied by {safe(denial.denied_by)}  {safe(denial.action_id)}  {safe(denial.approval_id)}{why}")


def _undecided(operator: OperatorClient, approval_id: str) -> ApprovalDetail:
    detail = operator.approval(approval_id)
    if detail.state != "pending":
        raise _decided(detail)
    return detail


def _lost(operator: OperatorClient, approval_id: str) -> Failure | NotFound:
    """Somebody else was first, or time was: say who."""
    try:
        detail = operator.approval(approval_id)
    except NotFound as error:
        return error
    except GatewayError:
        return Failure(Exit.NOT_FOUND, "already_decided", "already decided, or expired", "gatectl approvals list")
    return _decided(detail)


def _decided(detail: ApprovalDetail) -> Failure:
    by = f" by {detail.claimed_by}" if detail.claimed_by else ""
    return Failure(
        Exit.NOT_FOUND, "already_decided", f"already decided: {detail.state}{by}",
        f"gatectl approvals show {detail.approval_id}",
    )  # fmt: skip


def _question(detail: ApprovalDetail, view: PlanView, domain: str | None, path: str | None) -> str:
    learns = [f"learn {safe(one)}" for one in (domain, path) if one is not None]
    warning = "NOT ALL OF IT IS SHOWN ABOVE. " if view.is_cut else ""
    return f"{warning}approve {safe(detail.action_id)}{' and ' if learns else ''}{' and '.join(learns)}?"
