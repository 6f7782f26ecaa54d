"""Standing approvals: approvals standing, with list, add, revoke."""

import json
import re
import time
from collections.abc import Sequence
from typing import Any

import click

from gateway_client.cli.arguments import completing, ids
from gateway_client.cli.arguments.scalars import scalar
from gateway_client.cli.commands.approvals import approvals
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.safe import safe
from gateway_client.cli.display.times import clock, countdown, parse
from gateway_client.cli.exits import usage
from gateway_client.contract.standing import CallCondition, StandingApproval

standing = noun("standing", "Calls that run without waiting for a person, as you have signed it.", default="list")
_CONDITION = re.compile(r"(/.*?)\s*(<=|>=|==|\sin\s)\s*(.+)", re.DOTALL)
_UNITS = {"m": 60, "h": 3600, "d": 86_400}


def add_to(_cli: Group) -> None:
    """Hang the commands below `approvals`."""
    approvals.add_command(standing)


@standing.command("list")
@pass_desk
def list_standing(desk: CliContext) -> None:
    """List the standing approvals that are in force, with the calls that have run by each.

    Those for another ledger, of a gateway that shares the store, are named with it: they serve no call here.
    """
    with desk.operator() as operator:
        found = operator.standing_approvals()
    if desk.is_json:
        desk.out.document(found.raw)
        return
    is_shared = any(one.origin != found.origin for one in found.standing)
    rows = [
        (
            one.standing_id, one.action_id, one.principal, countdown(one.until),
            str(one.calls) if one.max_calls is None else f"{one.calls} of {one.max_calls}",
            _conditions(one.where), one.operator, *((one.origin,) if is_shared else ()),
        )
        for one in found.standing
    ]  # fmt: skip
    ledger = ("LEDGER",) if is_shared else ()
    columns = ("STANDING", "ACTION", "PRINCIPAL", "LEFT", "CALLS", "WHERE", "SIGNED BY", *ledger)
    desk.out.table(columns, rows, "nothing stands approved")


@standing.command("add")
@click.argument("action", shell_complete=completing.actions)
@click.option("--principal", required=True, metavar="NAME", help="The calls of this principal, and of no other.")
@click.option("--until", required=True, metavar="TIME", help="90m, 2h, 7d from now, or ISO 8601; at most 30 days.")
@click.option("--max-calls", type=click.IntRange(1, 1_000_000), metavar="N", help="At most so many calls.")
@click.option("--where", multiple=True, metavar="CONDITION", help="'/amount<=5000', '/currency in EUR,USD'.")
@yes_option
@pass_desk
def add(
    desk: CliContext, action: str, principal: str, until: str, max_calls: int | None, where: Sequence[str], yes: bool
) -> None:
    """Sign that calls of ACTION run which would wait for a person. Denials stay, and so do quorums.

    CONDITION is a pointer of the manifest's policy_input, then <=, >=, == or in, and a value; all must be kept. A
    number, true or false is that; everything else is a text, and so is '"5"'.
    """
    ends = _moment(until)
    conditions = [_condition(one) for one in where]
    with desk.operator() as operator:
        desk.change(operator, f"let calls of {safe(action)} by {safe(principal)} run without you?", yes)
        added = operator.add_standing(action, principal, ends, max_calls=max_calls, where=conditions)
    if desk.is_json:
        desk.out.document(added.raw)
        return
    desk.out.line(f"{safe(added.standing_id)} stands: {said(added)}")


@standing.command("revoke")
@click.argument("standing_id")
@yes_option
@pass_desk
def revoke(desk: CliContext, standing_id: str, yes: bool) -> None:
    """End a standing approval: the next call waits for a person again."""
    with desk.operator() as operator:
        found = lambda: [one.standing_id for one in operator.standing_approvals().standing]  # noqa: E731
        standing_id = ids.named(standing_id, found, "standing approvals")
        desk.change(operator, f"revoke {safe(standing_id)}?", yes)
        ended = operator.revoke_standing(standing_id)
    if desk.is_json:
        desk.out.document(ended.raw)
        return
    desk.out.line(
        f"{safe(ended.standing_id)} is revoked: {ended.calls} calls of {safe(ended.action_id)} have run by it"
    )


def said(one: StandingApproval) -> str:
    """Its terms, in a line."""
    many = "" if one.max_calls is None else f", at most {one.max_calls} of them"
    where = f", where {_conditions(one.where)}" if one.where else ""
    return f"calls of {safe(one.action_id)} by {safe(one.principal)} run until {clock(one.until)}{many}{where}"


def _conditions(where: Sequence[CallCondition]) -> str:
    return " and ".join(f"{safe(one.pointer)} {safe(one.op)} {safe(_shown(one.value))}" for one in where) or "-"


def _shown(value: Any) -> str:
    return ",".join(map(_shown, value)) if isinstance(value, list | tuple) else json.dumps(value, ensure_ascii=False)


def _moment(text: str) -> int:
    if text[:-1].isascii() and text[:-1].isdigit() and text[-1:] in _UNITS and len(text) < 8:
        return int(time.time()) + int(text[:-1]) * _UNITS[text[-1]]
    moment = parse(text)
    if moment is None:
        raise usage("--until: write 90m, 2h or 7d from now, or a time with its zone: 2026-01-31T18:00:00Z")
    return int(moment)


def _condition(text: str) -> dict[str, Any]:
    parts = _CONDITION.fullmatch(text.strip())
    if parts is None:
        raise usage("--where: write '/amount<=5000', '/amount>=1', '/currency==EUR' or '/currency in EUR,USD'")
    pointer, operator, right = parts[1], parts[2].strip(), parts[3].strip()
    value: Any = [scalar(one) for one in right.split(",")] if operator == "in" else scalar(right)
    if operator in ("<=", ">=") and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise usage(f"--where: {operator} compares numbers")
    return {"pointer": pointer, "op": operator, "value": value}
