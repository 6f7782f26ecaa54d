"""Bounds of values and of their sums: policy thresholds and policy caps, each with list, set, clear."""

import json
import shlex
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from gateway_client.cli.arguments import completing
from gateway_client.cli.arguments.scalars import number, scalar, shown
from gateway_client.cli.commands.policy import policy
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.output import note
from gateway_client.cli.display.safe import plain, safe
from gateway_client.cli.exits import usage
from gateway_client.contract.value_rules import CapView, ValueRuleChanged
from gateway_client.operators import OperatorClient

thresholds = noun("thresholds", "Calls that are held or denied by one of their values.", default="list")
caps = noun("caps", "Calls that are held or denied by the sum of one of their values.", default="list")


def add_to(_cli: Group) -> None:
    """Hang the commands below `policy`."""
    policy.add_command(thresholds)
    policy.add_command(caps)


def _number(_context: click.Context, option: click.Parameter, text: str | None) -> int | float | None:
    found = None if text is None else number(text)
    if text is not None and found is None:
        raise usage(f"--{str(option.name).replace('_', '-')}: write a number such as 10000 or 0.5")
    return found


def _no_rule(what: str, action: str | None) -> str:
    return f"{what} holds or denies a call" + ("" if action is None else f" of {safe(action)}")


@thresholds.command("list")
@click.argument("action", required=False, shell_complete=completing.actions)
@pass_desk
def list_thresholds(desk: CliContext, action: str | None = None) -> None:
    """List thresholds, of ACTION or of all."""
    with desk.operator() as operator:
        found = [one for one in operator.thresholds() if action in (None, one.action_id)]
    if desk.is_json:
        desk.out.document({"thresholds": [one.raw for one in found]})
        return
    rows: list[Any] = []
    for one in found:
        bounds = (("held above", one.hold_above), ("denied above", one.deny_above))
        lists = (("held unless in", one.hold_unless_in), ("denied unless in", one.deny_unless_in))
        words = [f"{name} {shown(bound)}" for name, bound in bounds if bound is not None]
        words += [f"{name} {plain([json.dumps(item) for item in items])}" for name, items in lists if items]
        rows.append((one.action_id, one.pointer, ", ".join(words)))
    desk.out.table(("ACTION", "VALUE", "IS"), rows, _no_rule("no value", action))


@thresholds.command("set")
@click.argument("action", shell_complete=completing.actions)
@click.argument("pointer")
@click.option("--hold-above", callback=_number, metavar="N", help="Hold calls with a greater number, or none.")
@click.option("--deny-above", callback=_number, metavar="N", help="Deny calls with a greater number.")
@click.option("--hold-unless-in", metavar="A,B", help="Hold calls with another value.")
@click.option("--deny-unless-in", metavar="A,B", help="Deny calls with another value.")
@yes_option
@pass_desk
def set_threshold(desk: CliContext, action: str, pointer: str, yes: bool, **given: Any) -> None:
    """Hold or deny calls of ACTION by the value at POINTER, one of its manifest's policy_input.

    In A,B a number, true or false is that; everything else is a text, and so is '"5"'.
    """
    rule = {name: value for name, value in given.items() if value is not None}
    if len(rule) != 1:
        raise usage("give one of --hold-above, --deny-above, --hold-unless-in and --deny-unless-in")
    for name in ("hold_unless_in", "deny_unless_in"):
        if name in rule:
            rule[name] = [scalar(item) for item in rule[name].split(",")]
    with desk.operator() as operator:
        desk.change(operator, f"bound {safe(pointer)} of {safe(action)}?", yes)
        changed = operator.set_threshold(action, pointer, rule)
    _say(desk, changed, "is bounded")


@caps.command("list")
@click.argument("action", required=False, shell_complete=completing.actions)
@click.option("--used-after", metavar="SUBJECT", help="With ACTION: only subjects behind this one, by their names.")
@pass_desk
def list_caps(desk: CliContext, action: str | None = None, used_after: str | None = None) -> None:
    """List caps, of ACTION or of all, and what has been used of them."""
    if used_after is not None and action is None:
        raise usage("--used-after needs an action")
    with desk.operator() as operator:
        found = operator.caps(action, used_after)
    if desk.is_json:
        desk.out.document({"caps": [one.raw for one in found]})
        return
    columns = ("ACTION", "VALUE", "PER", "WITHIN", "SUM IS", "SUBJECT", "USED", "UNKNOWN")
    desk.out.table(columns, [row for one in found for row in _rows(one)], _no_rule("no sum", action))
    for one in found:
        if one.used_next is not None:
            command = shlex.join(["gatectl", "policy", "caps", "list", one.action_id, "--used-after", one.used_next])
            note(f"{one.pointer} per {one.per} has more subjects: {command}")


def _rows(cap: CapView) -> list[tuple[Any, ...]]:
    """A row for each subject, those that have used most first."""
    bounds = (("held above", cap.hold_above), ("denied above", cap.deny_above))
    words = ", ".join(f"{name} {shown(bound)}" for name, bound in bounds if bound is not None)
    named = (cap.action_id, cap.pointer, cap.per, f"{cap.window_seconds} s", words)
    used = sorted(cap.used, key=lambda one: _amount(one.total), reverse=True)
    return [(*named, one.subject, one.total, one.unknown) for one in used] or [(*named, None, "0", "0")]


def _amount(text: str) -> Decimal:
    with suppress(InvalidOperation):
        return amount if (amount := Decimal(text)).is_finite() else Decimal(0)
    return Decimal(0)


@caps.command("set")
@click.argument("action", shell_complete=completing.actions)
@click.argument("pointer")
@click.option("--per", type=click.Choice(["principal", "owner", "all"]), required=True, help="The subject of a sum.")
@click.option("--window", type=click.IntRange(1, 2_678_400), required=True, metavar="SECONDS", help="How far it rolls.")
@click.option("--hold-above", callback=_number, metavar="N", help="Hold calls that make the sum greater.")
@click.option("--deny-above", callback=_number, metavar="N", help="Deny calls that make the sum greater.")
@yes_option
@pass_desk
def set_cap(desk: CliContext, action: str, pointer: str, per: str, window: int, yes: bool, **given: Any) -> None:
    """Bound the sum of the value at POINTER of calls of ACTION, one of its manifest's policy_input."""
    bounds = {name: value for name, value in given.items() if value is not None}
    if not bounds:
        raise usage("give --hold-above or --deny-above, or both")
    with desk.operator() as operator:
        desk.change(operator, f"bound the sum of {safe(pointer)} of {safe(action)}?", yes)
        changed = operator.set_cap(action, pointer, {"per": per, "window_seconds": window, **bounds})
    _say(desk, changed, "has a bounded sum")


def _add_clear(group: Group, name: str, clear: Callable[[OperatorClient, str, str | None], ValueRuleChanged]) -> None:
    @group.command("clear", help=f"Take the {name} of ACTION away: those of POINTER, or all.")
    @click.argument("action", shell_complete=completing.actions)
    @click.argument("pointer", required=False)
    @yes_option
    @pass_desk
    def clear_rules(desk: CliContext, action: str, yes: bool, pointer: str | None = None) -> None:
        with desk.operator() as operator:
            desk.change(operator, f"take {name} of {safe(action)} away?", yes)
            changed = clear(operator, action, pointer)
        _say(desk, changed, f"has no {name}")


_add_clear(thresholds, "thresholds", lambda operator, *named: operator.clear_thresholds(*named))
_add_clear(caps, "caps", lambda operator, *named: operator.clear_caps(*named))


def _say(desk: CliContext, changed: ValueRuleChanged, words: str) -> None:
    if desk.is_json:
        desk.out.document(changed.raw)
        return
    named = (
        safe(changed.action_id) if changed.pointer is None else f"{safe(changed.pointer)} of {safe(changed.action_id)}"
    )
    desk.out.line(f"{named} {words} from the next call on")
