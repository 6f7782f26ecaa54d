"""Learned domains and paths. The commands of both nouns are made by one function."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from gateway_client.cli.arguments import completing
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.safe import safe
from gateway_client.contract.learned import LearnedDomain, LearnedPath
from gateway_client.operators import OperatorClient


@dataclass(frozen=True, slots=True)
class LearnedNoun:
    """`name`: domain or path, as the client's methods and the answers have it."""

    name: str
    what: str

    def call(self, operator: OperatorClient, verb: str, *arguments: Any) -> Any:
        """`add_domain`, `remove_path` and so on; `domains` and `clear_domains` with `verb` empty or clear."""
        if verb in {"", "clear"}:
            return getattr(operator, f"{verb}_{self.name}s".lstrip("_"))(*arguments)
        return getattr(operator, f"{verb}_{self.name}")(*arguments)


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(_noun(LearnedNoun("domain", "Domains that actions may reach beyond their manifests.")))
    cli.add_command(_noun(LearnedNoun("path", "Paths that actions may touch beyond their manifests.")))


def _noun(kind: LearnedNoun) -> Group:
    group = noun(f"{kind.name}s", kind.what, default="list")

    @group.command("list", help=f"List learned {kind.name}s.")
    @click.option("--action", "action_id", metavar="ACTION", help="Of one action.")
    @pass_desk
    def list_(desk: CliContext, action_id: str | None = None) -> None:
        with desk.operator() as operator:
            rules: Sequence[LearnedDomain | LearnedPath] = kind.call(operator, "", action_id)
        if desk.is_json:
            desk.out.document({f"{kind.name}s": [one.raw for one in rules]})
            return
        rows = [(one.action_id, getattr(one, kind.name), one.source, one.added_by, one.added_at) for one in rules]
        desk.out.table(("ACTION", kind.name.upper(), "SOURCE", "ADDED BY", "ADDED"), rows, "nothing was learned")

    @group.command("add", help=f"Let ACTION use this {kind.name} from the next call on.")
    @click.argument("action", shell_complete=completing.actions)
    @click.argument("rule", metavar=kind.name.upper())
    @yes_option
    @pass_desk
    def add(desk: CliContext, action: str, rule: str, yes: bool) -> None:
        with desk.operator() as operator:
            desk.change(operator, f"let {safe(action)} use {safe(rule)}?", yes)
            added = kind.call(operator, "add", action, rule)
        if desk.is_json:
            desk.out.document(added.raw)
        else:
            desk.out.line(f"{safe(added.action_id)} may use {safe(getattr(added, kind.name))} from the next call on")

    @group.command("remove", help=f"Take a learned {kind.name} back, from the next call on.")
    @click.argument("action", shell_complete=completing.actions)
    @click.argument("rule", metavar=kind.name.upper())
    @yes_option
    @pass_desk
    def remove(desk: CliContext, action: str, rule: str, yes: bool) -> None:
        with desk.operator() as operator:
            desk.change(operator, f"take {safe(rule)} from {safe(action)}?", yes)
            removed = kind.call(operator, "remove", action, rule)
        if desk.is_json:
            desk.out.document({"removed": removed})
        else:
            desk.out.line(f"{safe(action)} has lost {safe(rule)}; calls that wait for approval keep their plans")

    @group.command("clear", help=f"Forget the learned {kind.name}s of one action, or of all.")
    @click.option("--action", "action_id", metavar="ACTION", help="Of one action; without it, of all.")
    @click.option("--yes", "-y", is_flag=True, help="Do not ask; needed where there is no terminal.")
    @pass_desk
    def clear(desk: CliContext, action_id: str | None, yes: bool) -> None:
        desk.confirm(f"forget every learned {kind.name} of {safe(action_id or 'all actions')}?", yes)
        with desk.operator() as operator:
            cleared = kind.call(operator, "clear", action_id)
        if desk.is_json:
            desk.out.document(cleared.raw)
        else:
            desk.out.line(f"{'-' if cleared.count is None else cleared.count} forgotten")

    return group
