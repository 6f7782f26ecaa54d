"""Webhooks: who is notified, what was given up, trying an endpoint, and sending again."""

import click

from gateway_client.cli.desk import CliContext, Group, noun, pass_desk
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit

webhooks = noun("webhooks", "Endpoints that are notified, and what could not be delivered to them.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(webhooks)


@webhooks.command("list")
@click.option("--endpoint", metavar="NAME", help="Dead letters of this endpoint alone.")
@click.option("--limit", type=click.IntRange(0, 500), default=50, show_default=True, help="So many dead letters.")
@pass_desk
def list_(desk: CliContext, endpoint: str | None = None, limit: int = 50) -> None:
    """List endpoints with what waits for them, and what was given up, the newest first."""
    with desk.operator() as operator:
        overview = operator.webhooks(endpoint, limit)
    if desk.is_json:
        desk.out.document(overview.raw)
        return
    rows = [(one.name, one.state, str(one.waiting), str(one.given_up)) for one in overview.endpoints]
    desk.out.table(("ENDPOINT", "STATE", "WAITING", "GIVEN UP"), rows, "no endpoint is configured")
    if overview.dead_letters:
        letters = [(one.event_id, one.endpoint, one.type, str(one.attempts), one.given_up_at, one.error)
                   for one in overview.dead_letters]  # fmt: skip
        desk.out.table(("EVENT", "ENDPOINT", "TYPE", "ATTEMPTS", "GIVEN UP", "WHY"), letters, "")


@webhooks.command("test")
@click.argument("name", metavar="NAME")
@pass_desk
def test(desk: CliContext, name: str) -> None:
    """Send one signed webhook.test to an endpoint now. Exit code 1 when it was not delivered."""
    with desk.operator() as operator:
        delivery = operator.test_webhook(name)
    if desk.is_json:
        desk.out.document(delivery.raw)
    if delivery.outcome != "delivered":
        why = f"{safe(delivery.name)}: {safe(delivery.outcome)}: {safe(delivery.error or '')}"
        raise Failure(ScriptExit.FAILED, "not_delivered", why, "gatectl webhooks list")
    if not desk.is_json:
        desk.out.line(f"{safe(delivery.name)}: delivered, as {safe(delivery.event_id)}")


@webhooks.command("redeliver")
@click.argument("name", metavar="NAME")
@click.option("--event", "event_id", metavar="EVENT", help="That of this event alone.")
@click.option("--status", "statuses", metavar="N[,N]",
              help="Only those refused with one of these HTTP statuses, such as 408,429.")  # fmt: skip
@pass_desk
def redeliver(desk: CliContext, name: str, event_id: str | None = None, statuses: str | None = None) -> None:
    """Send again what was given up: the oldest hundred, or that of one event."""
    try:
        wanted = [] if statuses is None else [int(one) for one in statuses.split(",")]
    except ValueError:
        raise click.BadParameter(
            "HTTP statuses with commas between them, such as 408,429.", param_hint="--status"
        ) from None
    with desk.operator() as operator:
        redelivery = operator.redeliver_webhook(name, event_id, wanted)
    if desk.is_json:
        desk.out.document(redelivery.raw)
    else:
        desk.out.line(f"{safe(redelivery.name)}: {redelivery.redelivered} wait again, {redelivery.left} stay given up")
