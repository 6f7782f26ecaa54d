"""What agents do: look at actions, and call one."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from gateway_client.cli import completing
from gateway_client.cli.desk import Command, Desk, Group, noun, pass_desk
from gateway_client.cli.exits import Exit, Failure, usage
from gateway_client.cli.results_view import ended, show_executed
from gateway_client.cli.safe import one_line, plain, safe
from gateway_client.decoding import parse_json
from gateway_client.errors import NotFound, ProtocolViolation
from gateway_client.results import Held

MAX_REQUEST = 1_048_576
"""docs/contract.md, "Limits"."""
actions = noun("actions", "The actions that can be called.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(actions)
    cli.add_command(execute)


@actions.command("list")
@pass_desk
def list_(desk: Desk) -> None:
    """List the registered actions."""
    with desk.agent() as agent:
        found = agent.actions()
    if desk.is_json:
        desk.out.document([one.raw for one in found])
        return
    rows = [(one.action_id, one.version, one.risk_level, one.description) for one in found]
    desk.out.table(("ACTION", "VERSION", "RISK", "WHAT IT DOES"), rows, "no actions")


@actions.command("show")
@click.argument("action", shell_complete=completing.actions)
@pass_desk
def show(desk: Desk, action: str) -> None:
    """Show one action: what it may do, and what a request looks like."""
    with desk.agent() as agent:
        found = agent.manifest(action)
        try:
            schema: dict[str, Any] | None = agent.request_schema(action)
        except NotFound:
            schema = None
    if desk.is_json:
        desk.out.document({"manifest": found.raw, "request_schema": schema})
        return
    out = desk.out
    out.line(f"{safe(found.action_id)} {safe(found.version)} · {out.mark(safe(found.risk_level))}")
    out.line(f"  {safe(found.description)}")
    limits = found.resource_limits or {}
    egress = found.egress or {}
    out.facts(
        [
            ("effects", found.declared_side_effects), ("scopes", found.required_scopes),
            ("reaches", egress.get("allowed_domains")), ("verified by", found.verifier_kind),
            ("module", found.provider_module_digest),
            ("limits", ", ".join(f"{safe(name)} {plain(value)}" for name, value in limits.items())),
        ]
    )  # fmt: skip
    if schema is None:
        out.line("request: anything, no schema is declared")
        return
    needed = schema.get("required")
    for name, rule in _properties(schema):
        is_needed = isinstance(needed, list) and name in needed
        out.line(f"request /{safe(name)}{' (required)' if is_needed else ''}: {one_line(rule)}")


def _properties(schema: dict[str, Any]) -> list[tuple[str, Any]]:
    found = schema.get("properties")
    return list(found.items()) if isinstance(found, dict) else [("", schema)]


@click.command(cls=Command)
@click.argument("action", shell_complete=completing.actions)
@click.option("--request", "file", metavar="FILE|-", type=click.Path(exists=True, dir_okay=False, allow_dash=True,
              path_type=Path), help="The request as JSON; {} without it.")  # fmt: skip
@click.option("--wait", is_flag=True, help="When an operator must decide first, wait for that.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True, max=604_800), help="Seconds for all of it.")
@pass_desk
def execute(desk: Desk, action: str, file: Path | None, wait: bool, timeout: float | None) -> None:
    """Call ACTION as an agent, with a lease of its own."""
    request = {} if file is None else _request(file)
    with desk.agent() as agent:
        on_held = None if desk.is_json else _say_held
        done = agent.execute(action, request, wait_for_approval=wait, timeout=timeout, on_held=on_held)
    if isinstance(done, Held):
        raise _held(desk, done)
    if desk.is_json:
        desk.out.document({**done.raw, "approval_id": done.approval_id})
    else:
        show_executed(desk.out, done)
    ended(done)


def _say_held(held: Held) -> None:
    """While it waits, whoever looks on wants to know for what; standard output is for the outcome alone."""
    text = f"gatectl: held as {safe(held.approval_id)}; to decide: gatectl approvals show {safe(held.approval_id)}"
    with suppress(OSError):  # whoever does not listen must not end the wait
        click.echo(text, err=True)


def _held(desk: Desk, held: Held) -> Failure:
    """A hold is not what was asked for: a script must not go on as if it were."""
    if desk.is_json:
        desk.out.document(held.raw)
    else:
        desk.out.line(f"{desk.out.mark('HELD')}  {safe(held.approval_id)}  trace {safe(held.trace_id)}")
    return Failure(
        Exit.DENIED, "approval_pending", "the call waits for an operator",
        f"gatectl approvals show {held.approval_id}; or execute with --wait",
    )  # fmt: skip


def _request(file: Path) -> Any:
    """The JSON of a file. Raises Failure; its text never quotes the file."""
    with sys.stdin.buffer if str(file) == "-" else file.open("rb") as opened:
        data = opened.read(MAX_REQUEST + 1)
    if len(data) > MAX_REQUEST:
        raise usage("the request is larger than 1 MB")
    try:
        return parse_json(data, "the request")
    except ProtocolViolation as error:
        raise usage(f"{error.reason}: {file}", "one JSON value, no name twice") from None
