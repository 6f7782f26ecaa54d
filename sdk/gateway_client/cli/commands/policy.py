"""The access lists: policy show, grant, revoke."""

import click

from gateway_client.cli.arguments import completing
from gateway_client.cli.arguments.requests import request_of, schema_of
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.safe import plain, safe
from gateway_client.cli.exits import usage
from gateway_client.results import PrincipalAcl

policy = noun("policy", "Who may call what.", default="show")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(policy)


@policy.command("show")
@click.argument("principal", required=False)
@pass_desk
def show(desk: CliContext, principal: str | None = None) -> None:
    """Show the whole access list, or what one PRINCIPAL may do."""
    if principal is not None:
        with desk.operator() as operator:
            _principal(desk, operator.principal(principal))
        return
    with desk.operator() as operator:
        acl = operator.policy()
    if desk.is_json:
        desk.out.document(acl.raw)
        return
    rows = [(name, one.actions, one.sinks, one.inherits_wildcard) for name, one in acl.principals.items()]
    desk.out.table(("PRINCIPAL", "ACTIONS", "SINKS", "AND WHAT * MAY"), rows, "nobody may call anything")
    desk.out.line()
    desk.out.facts([("policy", acl.policy_version)])
    for action_id, reason in (acl.denied_actions or {}).items():
        desk.out.line(f"denied to all: {safe(action_id)}: {safe(reason)}")
    for action_id, agents in (acl.allowlist or {}).items():
        desk.out.line(f"needs no approval: {safe(action_id)}: {plain(agents)}")


@policy.command("explain")
@click.argument("principal")
@click.argument("action", shell_complete=completing.actions)
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--request", "given", metavar="JSON|FILE|-", help="The request: '{…}', or where it stands.")
@click.option("--calls-remaining", type=click.IntRange(0), metavar="N", help="What the session would have left.")
@pass_desk
def explain(
    desk: CliContext,
    principal: str,
    action: str,
    values: tuple[str, ...],
    given: str | None,
    calls_remaining: int | None,
) -> None:
    """Tell how a call of ACTION by PRINCIPAL would be decided now, by which rule, and why. Changes nothing."""
    with desk.operator() as operator:
        is_given = given is not None or values
        request = request_of(given, values, lambda: schema_of(operator, action)) if is_given else None
        explanation = operator.explain(principal, action, request, calls_remaining)
    if desk.is_json:
        desk.out.document(explanation.raw)
        return
    said = {"allow": "allowed", "pending_approval": "held for a person", "deny": "denied"}.get(explanation.decision)
    desk.out.facts([
        ("decision", said or safe(explanation.decision)), ("rule", explanation.rule or "policy is not asked"),
        *([("code", explanation.error_code)] if explanation.error_code else []),
        *([("reason", explanation.reason)] if explanation.reason else []),
        *([("policy", explanation.policy_version)] if explanation.policy_version else []),
        *([("request", explanation.request_hash)] if explanation.request_hash else []),
    ])  # fmt: skip
    for one in explanation.assumed:
        desk.out.line(f"assumed: {safe(one)}")


@policy.command("grant")
@click.argument("principal")
@click.argument("actions", nargs=-1, required=True, metavar="ACTION...", shell_complete=completing.actions)
@yes_option
@pass_desk
def grant(desk: CliContext, principal: str, actions: tuple[str, ...], yes: bool) -> None:
    """Let PRINCIPAL call these actions too, from the next call on."""
    with desk.operator() as operator:
        desk.change(operator, f"let {safe(principal)} call {plain(actions)}?", yes)
        _principal(desk, operator.grant(principal, list(actions)))


@policy.command("revoke")
@click.argument("principal")
@click.argument("actions", nargs=-1, metavar="[ACTION]...", shell_complete=completing.actions)
@click.option("--all", "is_all", is_flag=True, help="Everything that its own entry grants.")
@yes_option
@pass_desk
def revoke(desk: CliContext, principal: str, actions: tuple[str, ...], is_all: bool, yes: bool) -> None:
    """Take these actions from PRINCIPAL; its entry goes with the last one."""
    if is_all == bool(actions):
        raise usage("say which actions are taken", "ACTION..., or --all")
    with desk.operator() as operator:
        taken = list(operator.principal(principal).actions) if is_all else list(actions)
        desk.change(operator, f"take {plain(taken)} from {safe(principal)}?", yes)
        _principal(desk, operator.revoke(principal, taken))


def _principal(desk: CliContext, access: PrincipalAcl) -> None:
    if desk.is_json:
        desk.out.document(access.raw)
        return
    pairs: list[tuple[str, object]] = [("principal", access.principal)]
    if access.risk_breakdown is None:
        pairs.append(("may call", access.actions))
    for level, actions in (access.risk_breakdown or {}).items():
        if actions:
            pairs.append((f"{safe(level)} risk", actions))
    if access.risk_breakdown is not None and not any(access.risk_breakdown.values()):
        pairs.append(("may call", access.actions))
    pairs.append(("sinks", access.sinks))
    if access.inherits_wildcard is not None:
        pairs.append(("entry * counts", access.inherits_wildcard))
    desk.out.facts([*pairs, ("policy", access.policy_version)])
