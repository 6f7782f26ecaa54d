"""Calls that were dispatched, and nobody knows what came of them: list them, and say what somebody found out."""

import click

from gateway_client.cli.desk import Desk, Group, noun, pass_desk
from gateway_client.cli.safe import safe
from gateway_client.cli.times import span

OUTCOMES = ("happened", "did_not_happen", "unknown")

intents = noun("intents", "Calls that were dispatched, and nobody knows what came of them.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(intents)


@intents.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="The oldest so many.")
@click.option("--after", metavar="INTENT", help="Only those after this one: the last of the page before.")
@pass_desk
def list_(desk: Desk, limit: int = 100, after: str | None = None) -> None:
    """List them, the oldest first."""
    with desk.operator() as operator:
        found = operator.intents(limit, after)
    if desk.is_json:
        desk.out.document({"intents": [one.raw for one in found], "count": len(found)})
        return
    rows = [(one.intent_id, one.action_id, one.principal, one.dispatched_at, span(one.age_seconds), one.trace_id)
            for one in found]  # fmt: skip
    columns = ("INTENT", "ACTION", "ASKED BY", "DISPATCHED", "AGE", "TRACE")
    desk.out.table(columns, rows, "every call that was dispatched has its receipt")


@intents.command("resolve")
@click.argument("intent_id", metavar="INTENT")
@click.option("--outcome", type=click.Choice(OUTCOMES), required=True, help="What came of it.")
@click.option("--note", metavar="TEXT", help="How you found out; it goes into the audit event.")
@pass_desk
def resolve(desk: Desk, intent_id: str, outcome: str, note: str | None) -> None:
    """Say what came of one. It leaves the list; an audit event keeps your answer."""
    with desk.operator() as operator:
        found = operator.resolve_intent(intent_id, outcome, note)
    if desk.is_json:
        desk.out.document(found.raw)
    else:
        desk.out.line(f"{safe(found.intent_id)} of {safe(found.action_id)}: {safe(found.outcome)}")
