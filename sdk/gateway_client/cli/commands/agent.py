"""Commands about actions: list them, show and preview one, and call one as an agent."""

import shlex
from contextlib import suppress
from typing import Any

import click

from gateway_client.calling.idempotency import key_header
from gateway_client.cli.arguments import completing
from gateway_client.cli.arguments.requests import request_of, schema_of
from gateway_client.cli.complaints import KEYED
from gateway_client.cli.desk import CliContext, Command, Group, noun, pass_desk
from gateway_client.cli.display.safe import one_line, plain, safe
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.cli.views.approval_counts import asked_for
from gateway_client.cli.views.cap_lines import cap_line
from gateway_client.cli.views.results import ended, show_executed, telling
from gateway_client.results import Held

NO_CALLS = "no calls of this key; where the context names an agent_key_file, calls keep their key"

actions = noun("actions", "The actions that can be called.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(actions)
    cli.add_command(execute)
    cli.add_command(calls)


@actions.command("list")
@pass_desk
def list_(desk: CliContext) -> None:
    """List the registered actions."""
    with desk.agent() as agent:
        summaries = agent.actions()
    if desk.is_json:
        desk.out.document([one.raw for one in summaries])
        return
    rows = [(one.action_id, one.version, one.risk_level, one.description) for one in summaries]
    desk.out.table(("ACTION", "VERSION", "RISK", "WHAT IT DOES"), rows, "no actions")


@actions.command("show")
@click.argument("action", shell_complete=completing.actions)
@pass_desk
def show(desk: CliContext, action: str) -> None:
    """Show one action: what it may do, and what a request looks like."""
    with desk.agent() as agent:
        manifest = agent.manifest(action)
        schema = schema_of(agent, action)
    if desk.is_json:
        desk.out.document({"manifest": manifest.raw, "request_schema": schema})
        return
    out = desk.out
    out.line(f"{safe(manifest.action_id)} {safe(manifest.version)} · {out.mark(safe(manifest.risk_level))}")
    out.text(safe(manifest.description), 2)
    limits = manifest.resource_limits or {}
    egress = manifest.egress or {}
    out.facts(
        [
            ("effects", manifest.declared_side_effects), ("scopes", manifest.required_scopes),
            ("reaches", egress.get("allowed_domains")), ("verified by", manifest.verifier_kind),
            *([("decided by", manifest.policy_input)] if manifest.policy_input else []),
            ("module", manifest.provider_module_digest),
            ("limits", ", ".join(f"{safe(name)} {plain(value)}" for name, value in limits.items())),
        ]
    )  # fmt: skip
    if schema is None:
        out.line("request: anything, no schema is declared")
        return
    needed = schema.get("required")
    for name, rule in _properties(schema):
        is_needed = isinstance(needed, list) and name in needed
        out.text(f"request /{safe(name)}{' (required)' if is_needed else ''}: {one_line(rule)}")


@actions.command("preview")
@click.argument("action", shell_complete=completing.actions)
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--principal", required=True, metavar="NAME", help="The principal whose call it would be.")
@click.option("--request", "given", metavar="JSON|FILE|-", help="The request: '{…}', or where it stands.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="A scope of its lease; may be repeated.")
@pass_desk
def preview(
    desk: CliContext, action: str, values: tuple[str, ...], principal: str, given: str | None, scopes: tuple[str, ...]
) -> None:
    """Show how a call of ACTION would be decided, and what it would send, without making it."""
    with desk.operator() as operator:
        request = request_of(given, values, lambda: schema_of(operator, action))
        shown = operator.preview(action, principal, request, scopes or None)
    if desk.is_json:
        desk.out.document(shown.raw)
        return
    said = {"allow": "allowed", "hold": "held for a person", "deny": "denied"}.get(shown.decision)
    quorum = (shown.shown or {}).get("quorum")
    needs = f", needs {safe(asked_for(quorum))}" if quorum else ""
    desk.out.facts([
        ("decision", (said or safe(shown.decision)) + needs), ("rule", shown.rule or "policy is not asked"),
        *([("reason", shown.deny_reason)] if shown.deny_reason else []),
        *([("lifted by", f"the standing approval {shown.standing_id}")] if shown.standing_id else []),
        ("trace", shown.trace_id),
        *(("cap", cap_line(cap)) for cap in shown.caps),
    ])  # fmt: skip
    if shown.sends is None:
        for target in (shown.shown or {}).get("approved_targets", ()):
            desk.out.line(f"touches {safe(target)}")
        return
    desk.out.line(f"sends {safe(shown.sends['method'])} {safe(shown.sends['url'])}")
    for name, value in shown.sends["headers"].items():
        desk.out.text(f"{safe(name)}: {safe(value)}", 2)
    if shown.sends["body"] is not None:
        desk.out.text(safe(shown.sends["body"]), 2)


def _properties(schema: dict[str, Any]) -> list[tuple[str, Any]]:
    properties = schema.get("properties")
    return list(properties.items()) if isinstance(properties, dict) else [("", schema)]


@click.command(cls=Command)
@click.argument("action", shell_complete=completing.actions)
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--request", "given", metavar="JSON|FILE|-", help="The request: '{…}', or where it stands; {} without it."
)
@click.option("--wait", is_flag=True, help="When an operator must decide first, wait for that.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True, max=604_800), help="Seconds for all of it.")
@click.option(
    "--idempotency-key",
    "key",
    metavar="KEY",
    help="The same call under the same key runs at most once.",
)
@pass_desk
def execute(
    desk: CliContext, action: str, values: tuple[str, ...], given: str | None, wait: bool, timeout: float | None,
    key: str | None,
) -> None:  # fmt: skip
    """Call ACTION as an agent, with a lease of its own. A lost call is asked for until its outcome is known."""
    with desk.agent() as agent:
        request = request_of(given, values, lambda: schema_of(agent, action))
        on_held = None if desk.is_json else _say_held
        try:
            done = agent.execute(
                action, request, wait_for_approval=wait, timeout=timeout, on_held=on_held, idempotency_key=_usable(key)
            )
        except KeyboardInterrupt:
            raise _interrupted(key) from None
    if isinstance(done, Held):
        raise _held(desk, done)
    with telling(done):
        if desk.is_json:
            desk.out.document({**done.raw, "approval_id": done.approval_id})
        else:
            show_executed(desk.out, done)
    ended(done)


@click.command(cls=Command)
@click.option("--limit", type=click.IntRange(1, 100), default=20, help="How many at most, the newest first (20).")
@click.option("--after", metavar="TRACE", help="Only calls before this one.")
@pass_desk
def calls(desk: CliContext, limit: int, after: str | None) -> None:
    """List the calls that this agent's key has made, and what became of them."""
    with desk.agent() as agent:
        page = agent.calls(limit, after)
    if desk.is_json:
        desk.out.document(page.raw)
        return
    rows = [
        (
            one.at,
            one.state,
            one.action_id or "-",
            one.error or "-",
            one.receipt_id or one.approval_id or "-",
            one.trace_id,
            one.summary or "",
        )
        for one in page.calls
    ]
    desk.out.table(("AT", "STATE", "ACTION", "ERROR", "RECEIPT OR APPROVAL", "TRACE", "SUMMARY"), rows, NO_CALLS)
    if page.next is not None:
        desk.out.line(f"more: gatectl calls --after {safe(page.next)}")


def _usable(key: str | None) -> str | None:
    """A key that a request can have. Raises Failure."""
    try:
        return key if key is None or key_header(key) else None
    except ValueError as error:
        raise usage(str(error)) from None


def _interrupted(key: str | None) -> Failure:
    """A call that was not waited for: it goes on, if it was sent."""
    mend = "look before you run it again: gatectl calls" if key is None else KEYED.format(key=shlex.quote(safe(key)))
    message = "what was sent by then goes on: the call may have run"
    return Failure(
        ScriptExit.INTERRUPTED, "interrupted", message, mend, may_have_run=True, idempotency_key=key
    )  # fmt: skip


def _say_held(held: Held) -> None:
    """Say on standard error what the call waits for; standard output is for the outcome alone."""
    called = "" if held.summary is None else f" ({safe(held.summary)})"
    named = safe(held.approval_id)
    text = f"gatectl: held as {named}{called}; to decide: gatectl approvals show {named}"
    with suppress(OSError):  # a closed standard error must not end the wait
        click.echo(text, err=True)


def _held(desk: CliContext, held: Held) -> Failure:
    """A hold is not what was asked for: a script must not go on as if it were."""
    if desk.is_json:
        desk.out.document(held.raw)
    else:
        called = "" if held.summary is None else f"  {safe(held.summary)}"
        desk.out.line(f"{desk.out.mark('HELD')}  {safe(held.approval_id)}{called}  trace {safe(held.trace_id)}")
    return Failure(
        ScriptExit.DENIED, "approval_pending", "the call waits for an operator",
        f"gatectl approvals show {held.approval_id}; or execute with --wait",
    )  # fmt: skip
