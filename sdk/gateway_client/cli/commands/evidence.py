"""Values of requests that evidence keeps: evidence erase."""

import click

from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.safe import safe
from gateway_client.cli.display.times import bound
from gateway_client.cli.exits import usage

evidence = noun("evidence", "Values of requests that evidence keeps.")


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(evidence)


@evidence.command("erase")
@click.option("--event", "event_id", metavar="EVENT", help="Those of the call that this event tells of.")
@click.option("--principal", metavar="NAME", help="Those of all calls of this one.")
@click.option("--before", metavar="TIME", help="Only of earlier calls, such as 90d or 2026-11-21T11:12:13Z.")
@click.option("--reason", metavar="TEXT", required=True, help="Goes into the audit event.")
@yes_option
@pass_desk
def erase(
    desk: CliContext, event_id: str | None, principal: str | None, before: str | None, reason: str, yes: bool
) -> None:
    """Erase kept values. Their commitments stay, so that all evidence goes on to verify."""
    if (event_id is None) == (principal is None):
        raise usage("say whose values are erased", "--event EVENT, or --principal NAME")
    if before is not None and principal is None:
        raise usage("--before goes with --principal")
    until = None if before is None else bound(before)
    erased, waiting = 0, 0
    sealed: tuple[str, ...] = ()
    with desk.operator() as operator:
        whose = f"the call of {safe(event_id)}" if event_id is not None else safe(principal or "")
        desk.change(operator, f"erase the kept values of {whose}?", yes)
        following: int | None = 0
        while following is not None:
            told = operator.erase_evidence(
                reason, event_id=event_id, principal=principal, before=until, after=following
            )  # fmt: skip
            erased, waiting, following = erased + told.erased, waiting + (told.waiting or 0), told.next
            sealed = told.sealed or ()
    if desk.is_json:
        desk.out.document({"erased": erased, "waiting": waiting, "sealed": list(sealed)})
        return
    desk.out.line(f"{erased} value{'s' * (erased != 1)} erased")
    if waiting:
        calls = f"{waiting} call{'s' * (waiting != 1)}"
        desk.out.line(f"{calls} of these still wait for a person or run: erase again afterwards")
    if sealed:
        desk.out.line(f"not erased: values in the sealed segments {', '.join(map(safe, sealed))}, if there are any")
