"""Calls that were dispatched and whose outcome is unknown: list them, and record what an operator found out."""

import click

from gateway_client.cli.arguments import ids
from gateway_client.cli.arguments.completing import unresolved
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.safe import safe
from gateway_client.cli.display.times import span
from gateway_client.cli.exits import usage
from gateway_client.cli.views import intent as intent_view
from gateway_client.cli.views.intent import sentence

OUTCOMES = ("happened", "did_not_happen", "unknown")

intents = noun("intents", "Dispatched calls whose outcome is unknown.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(intents)


@intents.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="The newest so many.")
@click.option("--after", metavar="INTENT", help="Only those older than this one: the last of the page before.")
@pass_desk
def list_(desk: CliContext, limit: int = 100, after: str | None = None) -> None:
    """List them, the newest first."""
    with desk.operator() as operator:
        page = operator.intents(limit, after)
    if desk.is_json:
        desk.out.document({"intents": [one.raw for one in page], "count": len(page)})
        return
    rows = [(one.intent_id, one.action_id, one.principal, one.dispatched_at, span(one.age_seconds), one.trace_id)
            for one in page]  # fmt: skip
    columns = ("INTENT", "ACTION", "ASKED BY", "DISPATCHED", "AGE", "TRACE")
    nothing = "every call that was dispatched has its receipt" if after is None else f"none is older than {safe(after)}"
    desk.out.table(columns, rows, nothing)


@intents.command("show")
@click.argument("intent_id", metavar="INTENT", shell_complete=unresolved)
@pass_desk
def show(desk: CliContext, intent_id: str) -> None:
    """Show what may have happened, what is known of it, and what you may do next."""
    with desk.operator() as operator:
        intent = operator.intent(ids.intent(operator, intent_id))
    if desk.is_json:
        desk.out.document(intent.raw)
    else:
        intent_view.show(desk.out, intent)


@intents.command("resolve")
@click.argument("intent_id", metavar="INTENT", shell_complete=unresolved)
@click.option("--outcome", type=click.Choice(OUTCOMES), help="What came of it.")
@click.option("--note", metavar="TEXT", help="How you found out; it goes into the audit event.")
@yes_option
@click.option("--verify", is_flag=True, help="Have the action's verifier look again first; nothing is executed.")
@pass_desk
def resolve(desk: CliContext, intent_id: str, outcome: str | None, note: str | None, verify: bool, yes: bool) -> None:
    """Record the outcome of an intent. It leaves the list; an audit event keeps your answer.

    With --verify alone the gateway looks again, keeps what it saw as an event, and the intent stays in the list: what
    came of it is yours to say.
    """
    if outcome is None and not verify:
        raise usage("no outcome", "add --outcome or --verify")
    if outcome is None and note is not None:
        raise usage("a note belongs to an outcome", "add --outcome")
    with desk.operator() as operator:
        intent_id = ids.intent(operator, intent_id)
        if outcome is not None:
            desk.change(operator, f"say that {safe(intent_id)}: {outcome}?", yes)
        looked = operator.verify_intent(intent_id) if verify else None
        if looked is not None and not desk.is_json:
            desk.out.line(f"{safe(looked.seen.verifier_kind)} looked again: {sentence(looked.seen)}")
        resolved = None if outcome is None else operator.resolve_intent(intent_id, outcome, note)
    if desk.is_json:
        desk.out.document({**(looked.raw if looked else {}), **(resolved.raw if resolved else {})})
    elif resolved is not None:
        desk.out.line(f"{safe(resolved.intent_id)} of {safe(resolved.action_id)}: {safe(resolved.outcome)}")
    else:
        desk.out.line(f"{safe(intent_id)} stays unresolved until you say what came of it: --outcome")
