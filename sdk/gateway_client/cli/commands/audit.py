"""The audit chain: events, tail, verify. Checkpoints of the log are in gateway_client/cli/commands/checkpoints.py."""

from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

from gateway_client.cli.arguments.files import written
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk
from gateway_client.cli.display.output import Output, ProgressLine, note
from gateway_client.cli.display.safe import safe, short
from gateway_client.cli.display.times import bound, clock
from gateway_client.cli.exits import Failure, ScriptExit, nothing_verified, usage
from gateway_client.cli.exporting import export, exported
from gateway_client.cli.views.event import kept_of, reason_of
from gateway_client.cli.watching.following import Follow
from gateway_client.cli.watching.tailing import Tail
from gateway_client.evidence.chain import verify_chain
from gateway_client.results import AuditEvent, EventFilter

audit = noun("audit", "The chain of audit events.")
FILTERS = (
    ("trace-id", "Of one call."),
    ("action-id", "Of one action."),
    ("principal", "Of one principal; operators are operator:NAME."),
    ("session-id", "Of one session."),
    ("event-type", "Of one type, such as ActionCall."),
)
DECISIONS = ("allow", "deny", "error", "pending_approval")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(audit)


def _kept(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str] | None:
    """The values by pointer; None without any."""
    pairs = [one.partition("=") for one in given]
    if not all(pointer.startswith("/") and equals for pointer, equals, _ in pairs):
        raise click.BadParameter("must be POINTER=VALUE, such as /invoice_id=in_7")
    return {pointer: value for pointer, _, value in pairs} or None


def filtered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose events."""
    function = click.option("--kept", metavar="POINTER=VALUE", multiple=True, callback=_kept,
                            help="Of calls that keep this value, such as /invoice_id=in_7.")(function)  # fmt: skip
    function = click.option("--decision", type=click.Choice(DECISIONS), help="With this decision.")(function)
    for name, text in reversed(FILTERS):
        function = click.option(f"--{name}", help=text)(function)
    return function


@audit.command("events")
@filtered
@click.option("--after", metavar="TIME", help="Later than this: ISO 8601, or 15m, 6h, 2d ago.")
@click.option("--before", metavar="TIME", help="Earlier than this.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="The newest so many.")
@click.option("--all", "is_all", is_flag=True, help="All of them.")
@click.option("--export", "target", type=click.Path(dir_okay=False, path_type=Path),
              help="All of them into a new file, oldest first, for audit verify --export.")  # fmt: skip
@pass_desk
def events(
    desk: CliContext,
    after: str | None,
    before: str | None,
    limit: int,
    is_all: bool,
    target: Path | None,
    **filters: Any,
) -> None:
    """Show events, newest first. With --json one event a line, as the chain has it."""
    where = EventFilter(
        **filters, after=None if after is None else bound(after), before=None if before is None else bound(before)
    )
    with desk.operator() as operator:
        matches = operator.iter_events(where, 1000 if is_all or target is not None else min(limit, 1000))
        if target is not None:
            with written(target):
                count = export(matches, target)
            if any(asdict(where).values()):
                note("a filtered export is no chain: audit verify will find it broken")
            _exported(desk, target, count)
            return
        chosen = matches if is_all else islice(matches, limit)
        if desk.is_json:
            for one in chosen:
                desk.out.record(one.raw)
            return
        shown = list(chosen)
    has_kept = any(one.kept_values is not None for one in shown)
    columns = ("TIME", "EVENT", "DECISION", "ACTION", "WHO", "WHY", *(("KEPT",) if has_kept else ()), "TRACE")
    desk.out.table(columns, [_row(one, has_kept) for one in shown], "no events")


def _row(event: AuditEvent, has_kept: bool) -> tuple[Any, ...]:
    why = reason_of(event)
    return (
        clock(event.timestamp), event.event_type, event.decision, event.action_id, event.principal,
        None if why is None else short(why, 60), *((kept_of(event),) if has_kept else ()), event.trace_id,
    )  # fmt: skip


def _exported(desk: CliContext, target: Path, count: int) -> None:
    if desk.is_json:
        desk.out.document({"file": str(target), "events": count})
    else:
        desk.out.line(f"{count} events in {safe(str(target))}")


@audit.command("tail")
@filtered
@click.option("--lines", "-n", type=click.IntRange(0, 1000), default=10, show_default=True, help="Begin so far back.")
@click.option("--interval", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds.")
@click.option("--for", "seconds", type=click.FloatRange(min=0, max=604_800), help="End after so many seconds.")
@pass_desk
def tail(desk: CliContext, lines: int, interval: float, seconds: float | None, **filters: Any) -> None:
    """Show events as they come, oldest first. Ctrl-C ends it."""
    out, follow = desk.out, Follow(interval, seconds)
    seen = Tail(EventFilter(**filters))
    with desk.operator() as operator:
        known = operator.events(seen.where, 1000).events
        # All of them count as seen, also what an overlap reaches back to; the last few are shown.
        begun = seen.fresh(known)
        for event in begun[max(0, len(begun) - lines) :]:
            _tell(out, event)
        while follow.rest():
            fresh = follow.ask(lambda: seen.fresh(list(operator.iter_events(seen.next_filter()))))
            for event in fresh or ():
                _tell(out, event)


def _tell(out: Output, event: AuditEvent) -> None:
    if out.is_json:
        out.record(event.raw)
        return
    runtime = event.raw.get("runtime")
    took = runtime.get("duration_ms") if isinstance(runtime, dict) else None
    decision = event.decision or "-"
    is_call = event.event_type == "ActionCall"
    named = (event.action_id,) if is_call else (event.event_type, event.action_id)
    parts = [clock(event.timestamp), short(decision).ljust(5), *(short(one) for one in named if one)]
    parts.append(short(event.principal or "-"))
    if isinstance(took, int):
        parts.append(f"{took} ms")
    why = event.deny_reason or event.error_code or event.reason
    parts += [short(why, 120)] if why else []
    out.parts([*parts, short(event.trace_id or event.event_id)])


@audit.command("verify")
@click.option("--export", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Walk an export here, and ask nobody.")  # fmt: skip
@click.option("--head", metavar="HASH", help="What the export must end with, from where you keep heads.")
@pass_desk
def verify(desk: CliContext, file: Path | None, head: str | None) -> None:
    """Walk the whole chain: the gateway does, or, with --export, this program. Exit 8 when it is broken."""
    if file is not None:
        _verify_export(desk, file, head)
        return
    if head is not None:
        raise usage("--head belongs to --export")
    progress = ProgressLine()
    progress.show("the gateway walks its chain…")
    try:
        with desk.operator() as operator:
            report = operator.verify_audit()
    finally:
        progress.end()
    if desk.is_json:
        desk.out.document(report.raw)
    elif report.intact:
        desk.out.line(
            f"{desk.out.mark('intact')}: {report.events_checked} events, each with the hash of the one before"
        )
        if report.head is not None and report.size:
            desk.out.line(f"tree of {report.size} entries, root {safe(report.root or '-')}")
            desk.out.line(f"head {safe(report.head)}")
    if not report.intact:
        raise _broken(report.broken_at, report.reason, report.events_checked)


def _verify_export(desk: CliContext, file: Path, head: str | None) -> None:
    progress = ProgressLine()
    try:
        report = verify_chain(exported(file, progress))
    finally:
        progress.end()
    is_intact, reason = report.intact, report.reason
    is_empty = is_intact and report.events_checked == 0
    if is_empty:
        is_intact, reason = False, "the export has no event"
    elif is_intact and head is not None and report.head_hash != head:
        is_intact, reason = False, "the export does not end with the hash that --head names"
    if desk.is_json:
        desk.out.document({**asdict(report), "intact": is_intact, "reason": reason})
    elif is_intact:
        begin = "from the first event ever" if report.first_prev_hash is None else f"from {report.first_prev_hash}"
        desk.out.line(f"{desk.out.mark('intact')}: {report.events_checked} events, {begin}")
        desk.out.line(f"head {safe(report.head_hash or '-')}")
    if is_empty:
        raise nothing_verified(file, "event")
    if not is_intact:
        raise _broken(report.broken_at, reason, report.events_checked)


def _broken(broken_at: str | None, reason: str | None, checked: int) -> Failure:
    where = f" at {broken_at}" if broken_at else ""
    return Failure(
        ScriptExit.VERIFICATION_FAILED,
        "chain_broken",
        f"broken{where} after {checked} events: {reason or 'no reason'}",
        "keep a copy of the ledger before anything else; docs/evidence.md",
    )
