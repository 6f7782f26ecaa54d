"""The agents that need no approval for an action: allowlist list, add, remove."""

from typing import Any

import click

from gateway_client.cli.arguments import completing
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.safe import safe

allowlist = noun("allowlist", "Agents that need no approval for an action.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(allowlist)


@allowlist.command("list")
@pass_desk
def list_(desk: CliContext) -> None:
    """List who needs no approval."""
    with desk.operator() as operator:
        acl = operator.policy()
    by_action = {action_id: list(agents) for action_id, agents in (acl.allowlist or {}).items()}
    if desk.is_json:
        desk.out.document({"allowlist": by_action, "policy_version": acl.policy_version})
        return
    rows: list[Any] = [(action_id, agent) for action_id, agents in by_action.items() for agent in agents]
    desk.out.table(("ACTION", "AGENT"), rows, "every hold waits for a person")


@allowlist.command("add")
@click.argument("action", shell_complete=completing.actions)
@click.argument("agent")
@yes_option
@pass_desk
def add(desk: CliContext, action: str, agent: str, yes: bool) -> None:
    """Spare AGENT (a principal) the approval of ACTION; every other rule still holds."""
    with desk.operator() as operator:
        desk.change(operator, f"spare {safe(agent)} the approval of {safe(action)}?", yes)
        entry = operator.allow(action, agent)
    if desk.is_json:
        desk.out.document(entry.raw)
    else:
        desk.out.line(f"{safe(entry.agent_id)} needs no approval for {safe(entry.action_id)} from the next call on")


@allowlist.command("remove")
@click.argument("action", shell_complete=completing.actions)
@click.argument("agent")
@yes_option
@pass_desk
def remove(desk: CliContext, action: str, agent: str, yes: bool) -> None:
    """Ask for approval again."""
    with desk.operator() as operator:
        desk.change(operator, f"ask for approval of {safe(action)} by {safe(agent)} again?", yes)
        entry = operator.disallow(action, agent)
    if desk.is_json:
        desk.out.document(entry.raw)
    else:
        desk.out.line(f"{safe(entry.agent_id)} needs approval for {safe(entry.action_id)} again")
