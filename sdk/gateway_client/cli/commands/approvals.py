"""Calls that wait for a person: list, show, approve, deny.

Guarantees that what is approved is what was shown: the operator's signature names one stored plan and the hash of what
this program showed of it, and the answer's hash is held against the hash that was shown.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import click

from gateway_client.cli import deciding
from gateway_client.cli.arguments import ids
from gateway_client.cli.arguments.completing import held
from gateway_client.cli.bulk_denials import deny_all
from gateway_client.cli.deciding import LONGEST, described, require_same_plan, signed_by, to_sign, undecided
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.output import note
from gateway_client.cli.display.safe import safe
from gateway_client.cli.display.times import bound, countdown
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.cli.paging import by_principal
from gateway_client.cli.views.approval_counts import counted
from gateway_client.cli.views.call_names import named
from gateway_client.cli.views.plan import PlanView
from gateway_client.cli.views.results import ended, show_executed, telling
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.errors import ActionFailed, ApprovalsMissing, GatewayError
from gateway_client.operators import OperatorClient
from gateway_client.results import Approval

STATES = ("pending", "claimed", "approved", "denied", "failed")
approvals = noun("approvals", "Calls that wait for a person.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(approvals)


@approvals.command("list")
@click.option("--status", type=click.Choice(STATES), help="Only these; all of the last 24 hours without it.")
@click.option("--principal", metavar="NAME", help="Only those of this principal.")
@click.option("--action", "action_id", metavar="ACTION", help="Only calls of this action.")
@click.option(
    "--before",
    metavar="TIME",
    help="Only those created before it: the next page of one --principal begins a millisecond after the last CREATED.",
)
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="The newest so many.")
@pass_desk
def list_(
    desk: CliContext, status: str | None = None, principal: str | None = None, action_id: str | None = None,
    before: str | None = None, limit: int = 50,
) -> None:  # fmt: skip
    """List the newest approvals, those of one principal together; with --json as the gateway sends them."""
    with desk.operator() as operator:
        page = operator.approvals(
            status, limit, principal=principal, action_id=action_id, before=None if before is None else bound(before),
            group="principal" if principal is None and before is None else None,
        )  # fmt: skip
        verdicts = {} if desk.is_json else _verified(operator, page.approvals)
    if desk.is_json:
        desk.out.document(page.raw)
        return
    rows = [
        (
            one.approval_id, one.state, named(one.action_id, one.summary), one.risk_level, one.principal,
            countdown(one.expires_at) if one.state == "pending" else "-", outcome(one, verdicts.get(one.receipt_id)),
            one.created_at,
        )
        for one in by_principal(page.approvals)
    ]  # fmt: skip
    columns = ("APPROVAL", "STATE", "ACTION", "RISK", "ASKED BY", "LEFT", "OUTCOME", "CREATED")
    desk.out.table(columns, rows, "nothing waits" if status == "pending" else "no approvals")
    if page.total is not None and page.total > len(rows):
        note(f"these are {len(rows)} of {page.total}; the others: --limit, --principal, --before")
    elif page.total is None and len(rows) == limit:
        note(f"these are the newest {limit}; there may be more (--limit)")


@approvals.command("show")
@click.argument("approval_id", shell_complete=held)
@click.option("--full", is_flag=True, help="However long it is.")
@pass_desk
def show(desk: CliContext, approval_id: str, full: bool) -> None:
    """Show what will happen when it is approved, who asks, and what proves it; once it has ended, what was held."""
    with desk.operator() as operator:
        detail = operator.approval(ids.approval(operator, approval_id), ended=True)
        if desk.is_json:
            desk.out.document(detail.raw)
            return
        view = PlanView(described(operator, detail), full)
    view.show(desk.out)
    if detail.state == "pending":
        view.next(desk.out)


@approvals.command("approve")
@click.argument("approval_id", required=False, shell_complete=held)
@click.option("--learn-domain", metavar="DOMAIN", help="Let the action reach it from now on, if this call goes well.")
@click.option("--learn-path", metavar="PATTERN", help="The same for a path.")
@click.option("--full", is_flag=True, help="Show the plan however long it is.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask; needed where there is no terminal.")
@pass_desk
def approve(
    desk: CliContext, approval_id: str | None, learn_domain: str | None, learn_path: str | None, full: bool, yes: bool
) -> None:
    """Show what will happen, ask once, and let it happen. On a terminal without an id: the only call that waits."""
    with desk.operator(execute_timeout=LONGEST) as operator:
        approval_id = _chosen(desk, operator, approval_id)
        detail = undecided(operator, approval_id)
        shown = to_sign(detail)
        view = PlanView(detail if desk.is_json else described(operator, detail), full)
        if not desk.is_json:
            view.show(desk.out)
        for warning in _not_needed(detail, learn_domain, learn_path):
            note(warning)
        desk.confirm(_question(detail, view, learn_domain, learn_path), yes)
        try:
            done = deciding.approve(operator, detail, shown, learn_domain, learn_path)
        except ApprovalsMissing as missing:
            _tell_missing(desk, detail, missing)
            _tell_signed(desk, shown, operator.thumbprint)
            return
        except ActionFailed:  # decided all the same
            _tell_signed(desk, shown, operator.thumbprint)
            raise
        except KeyboardInterrupt:
            message = "what was sent by then goes on: the call may have run"
            mend = f"gatectl approvals show {approval_id}"
            raise Failure(ScriptExit.INTERRUPTED, "interrupted", message, mend, may_have_run=True) from None
        signer = operator.thumbprint
    with telling(done):
        if desk.is_json:
            desk.out.document(done.raw)
        else:
            show_executed(desk.out, done)
        _tell_signed(desk, shown, signer)
    require_same_plan(detail, done)
    ended(done)


@approvals.command("deny")
@click.argument("approval_id", required=False, shell_complete=held)
@click.option("--principal", metavar="NAME", help="With --all: every call of this principal that waits.")
@click.option("--all", "is_all", is_flag=True, help="Not one call but all of --principal.")
@click.option("--reason", metavar="TEXT", help="What the agent reads; at most 500 characters.")
@yes_option
@pass_desk
def deny(
    desk: CliContext, approval_id: str | None, principal: str | None, is_all: bool, reason: str | None, yes: bool
) -> None:
    """End a held call without running it, or all that one principal has waiting."""
    if is_all or principal is not None:
        if approval_id is not None or principal is None or not is_all or reason is None:
            raise usage("all calls of a principal need --principal, --all and --reason, and no id", "gatectl approvals")
        deny_all(desk, principal, reason, yes)
        return
    if approval_id is None:
        raise usage("no approval id", "gatectl approvals list --status pending")
    with desk.operator() as operator:
        approval_id = ids.approval(operator, approval_id)
        desk.change(operator, f"deny {safe(approval_id)}?", yes)
        shown = to_sign(undecided(operator, approval_id))
        denial = deciding.deny(operator, approval_id, reason, shown)
        signer = operator.thumbprint
    if desk.is_json:
        desk.out.document(denial.raw)
    else:
        why = f": {safe(denial.deny_reason)}" if denial.deny_reason else ""
        desk.out.line(f"denied by {safe(denial.denied_by)}  {safe(denial.action_id)}  {safe(denial.approval_id)}{why}")
    _tell_signed(desk, shown, signer)


def outcome(one: Approval, verification: str | None) -> str | None:
    """The outcome: that it has expired, the reason of a denial, the code of a failure, or how the effect was verified,
    where that is known, and the receipt."""
    if one.state == "expired":
        return "nobody decided before it ended"  # by time, or since its session or everything was revoked
    if one.state == "pending" and one.approvals:
        return counted(one.approvals)
    why = one.deny_reason or one.error_code
    return why or " ".join(part for part in (verification, one.receipt_id) if part) or None


def _tell_missing(desk: CliContext, detail: ApprovalDetail, missing: ApprovalsMissing) -> None:
    if desk.is_json:
        count = {"given": missing.given, "needed": missing.needed}
        desk.out.document({"decision": "pending_approval", "approval_id": detail.approval_id, "approvals": count})
    else:
        desk.out.line(f"approved, and not run yet: {missing.given} of {missing.needed} approvals are given")


def _verified(operator: OperatorClient, listed: Iterable[Approval]) -> dict[str | None, str]:
    """How the effects of the newest calls were verified, by receipt, where one of the list has run."""
    if not any(one.receipt_id for one in listed):
        return {}
    with suppress(GatewayError):  # the list is worth showing without it
        calls = ids.recent_calls(operator, ids.MOST)
        return {
            one.receipt_id: str(one.raw["verification_outcome"]) for one in calls if "verification_outcome" in one.raw
        }
    return {}


def _chosen(desk: CliContext, operator: OperatorClient, given: str | None) -> str:
    """A person may mean the only one that waits; a script must say which."""
    if given is not None:
        return ids.approval(operator, given)
    if not desk.can_ask:
        raise usage("no approval id", "gatectl approvals list --status pending")
    return ids.only_waiting(operator)


def _tell_signed(desk: CliContext, shown: ApprovalDetail | None, signer: str) -> None:
    said = signed_by(shown, signer)
    if desk.is_json:
        note(said)
    else:
        desk.out.line(said)


def _not_needed(detail: ApprovalDetail, domain: str | None, path: str | None) -> Iterator[str]:
    """A rule to learn that this call does not wait for: probably a mistake."""
    hosts = detail.unresolved_domains or ()
    if domain is not None and not any(_covers(domain.lower(), host) for host in hosts):
        yield f"warn  this call does not wait for the domain {domain}: it is learned all the same"
    if path is not None and not detail.unresolved_paths:
        yield f"warn  this call does not wait for a path: {path} is learned all the same"


def _covers(domain: str, host: str) -> bool:
    return host == domain or (domain.startswith("*.") and host.endswith(domain[1:]))


def _question(detail: ApprovalDetail, view: PlanView, domain: str | None, path: str | None) -> str:
    learns = [f"learn {safe(one)}" for one in (domain, path) if one is not None]
    warning = "NOT ALL OF IT IS SHOWN ABOVE. " if view.is_cut else ""
    return f"{warning}approve {safe(detail.action_id)}{' and ' if learns else ''}{' and '.join(learns)}?"
