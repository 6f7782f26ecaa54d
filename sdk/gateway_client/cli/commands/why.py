"""gatectl why: what happened to one call, from whichever of its identifiers is at hand."""

import click

from gateway_client.cli.arguments import ids
from gateway_client.cli.arguments.completing import held
from gateway_client.cli.desk import CliContext, Command, Group, pass_desk
from gateway_client.cli.views.why import Story, show
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.contract.receipts import Receipt
from gateway_client.errors import GatewayError, NotFound
from gateway_client.operators import OperatorClient
from gateway_client.results import EventFilter

MOST_EVENTS = 100


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(why)


@click.command(cls=Command)
@click.argument("given", metavar="TRACE|RECEIPT|APPROVAL", shell_complete=held)
@pass_desk
def why(desk: CliContext, given: str) -> None:
    """Show decision, rule, reason, what the worker made of it, receipt and approval of one call."""
    with desk.operator() as operator:
        story = story_of(operator, ids.anything(operator, given))
    if desk.is_json:
        receipt = None if story.receipt is None else dict(story.receipt.raw)
        approval = None if story.approval is None else dict(story.approval.raw)
        events = [dict(one.raw) for one in story.events]
        desk.out.document({"trace_id": story.trace_id, "events": events, "receipt": receipt, "approval": approval})
    else:
        show(desk.out, story)


def story_of(operator: OperatorClient, name: str) -> Story:
    """The whole call of a trace, a receipt or an approval. Raises NotFound when no event knows it, GatewayError."""
    trace_id = _trace_of(operator, name)
    events = operator.events(EventFilter(trace_id=trace_id), MOST_EVENTS).events[::-1]
    if not events:
        raise NotFound("evidence_not_found", status=404)
    story = Story(trace_id, events, None, None)
    receipt_id, approval_id = story.of_calls("receipt_id"), story.of_calls("approval_id")
    return Story(
        trace_id, events,
        None if receipt_id is None else _receipt(operator, receipt_id),
        None if approval_id is None else _approval(operator, approval_id),
    )  # fmt: skip


def _trace_of(operator: OperatorClient, name: str) -> str:
    """The trace of a receipt or an approval; any other name is one."""
    kind = name.partition("_")[0]
    if kind == "rcpt":
        trace_id = operator.receipt(name).trace_id
        member = "receipt_id"
    elif kind == "apr":
        detail = _approval(operator, name)
        trace_id = None if detail is None else detail.trace_id
        member = "approval_id"
    else:
        return name
    if trace_id is None:  # an approval no longer kept, an older receipt
        calls = (one for one in ids.recent_calls(operator) if one.raw.get(member) == name)
        trace_id = next((one.trace_id for one in calls), None)
    if trace_id is None:
        raise NotFound("evidence_not_found", status=404)
    return trace_id


def _receipt(operator: OperatorClient, receipt_id: str) -> Receipt | None:
    try:
        return operator.receipt(receipt_id)
    except NotFound:
        return None


def _approval(operator: OperatorClient, approval_id: str) -> ApprovalDetail | None:
    """None of one that is not kept any more, or has no plan to show."""
    try:
        return operator.approval(approval_id, ended=True)
    except GatewayError as error:
        if error.status in {404, 409}:
            return None
        raise
