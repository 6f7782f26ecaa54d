"""Agents that have a lease now: sessions list, revoke."""

import click

from gateway_client.cli.arguments import ids
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk, yes_option
from gateway_client.cli.display.safe import safe
from gateway_client.cli.display.times import clock, countdown
from gateway_client.cli.exits import usage
from gateway_client.cli.paging import every_session
from gateway_client.contract.sessions import Session

sessions = noun("sessions", "Agents that have a lease now.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(sessions)


@sessions.command("list")
@click.option("--principal", metavar="NAME", help="Only those of this one.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="The newest so many.")
@pass_desk
def list_(desk: CliContext, principal: str | None = None, limit: int = 100) -> None:
    """List them, the newest first: whose they are, until when, and what they have left."""
    with desk.operator() as operator:
        newest = every_session(operator, principal, limit)
    if desk.is_json:
        desk.out.document({"sessions": [one.raw for one in newest], "count": len(newest)})
        return
    columns = ("SESSION", "PRINCIPAL", "OWNER", "KNOWN BY", "SINCE", "ENDS IN", "CALLS LEFT", "HELD")
    desk.out.table(columns, [row(one) for one in newest], "nobody has a lease")


def row(session: Session) -> tuple[object, ...]:
    """The columns of a session in a list."""
    return (
        session.session_id, session.principal, session.owner or "-", known_by(session), clock(session.issued_at),
        countdown(session.expires_at), calls_left(session), session.pending_approvals or "-",
    )  # fmt: skip


def known_by(session: Session) -> str:
    """The user id that asked for the session, or how else its principal was identified."""
    return safe(session.identity_method or "-") if session.uid is None else f"uid {session.uid}"


def calls_left(session: Session) -> str:
    """`7 of 10`, or `not counted` for a session without a budget."""
    return "not counted" if session.max_calls is None else f"{session.calls_remaining} of {session.max_calls}"


@sessions.command("revoke")
@click.argument("session_ids", metavar="SESSION...", nargs=-1)
@click.option("--principal", metavar="NAME", help="All of this one that live.")
@yes_option
@pass_desk
def revoke(desk: CliContext, session_ids: tuple[str, ...], principal: str | None, yes: bool) -> None:
    """End sessions before their time: their leases are refused at once, and what waits of them expires.

    An agent that may have a lease takes a new one: to keep it out, take away what it may call first.
    """
    if (principal is None) == (not session_ids):
        raise usage("say which sessions end", "SESSION..., or --principal NAME")
    with desk.operator() as operator:
        if principal is None:
            chosen = [ids.session(operator, given) for given in session_ids]
            question = f"end {', '.join(safe(one) for one in chosen)}?"
        else:
            chosen = [one.session_id for one in every_session(operator, principal)]
            question = f"end {len(chosen)} session{'s' * (len(chosen) != 1)} of {safe(principal)}?"
        if chosen:
            desk.change(operator, question, yes)
        ended = [operator.revoke_session(one) for one in chosen]
    if desk.is_json:
        desk.out.document({"sessions": [one.raw for one in ended], "count": len(ended)})
        return
    for one in ended:
        how = "was revoked before" if one.already_revoked else "revoked"
        desk.out.line(f"{safe(one.session_id)} of {safe(one.principal)}: {how}")
    if not ended:
        desk.out.line(f"{safe(principal or '')} has no lease")
