"""Running the gateway: status, drain, reload, revoke-all, epoch, metrics."""

import os
import re
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from gateway_client.cli.arguments.files import written
from gateway_client.cli.desk import CliContext, Command, Group, pass_desk, yes_option
from gateway_client.cli.display.output import Output, ProgressLine, note
from gateway_client.cli.display.safe import lines, plain
from gateway_client.cli.display.times import span
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.cli.watching.following import Follow
from gateway_client.contract.admin import LastCheckpoint
from gateway_client.errors import GatewayError, GatewayFault
from gateway_client.operators import OperatorClient
from gateway_client.results import EventFilter, Status


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    for one in (status, drain, reload, revoke_all, epoch, metrics):
        cli.add_command(one)


@click.command(cls=Command)
@pass_desk
def status(desk: CliContext) -> None:
    """The facts of the running gateway."""
    with desk.operator() as operator:
        facts = operator.status()
    if desk.is_json:
        desk.out.document(facts.raw)
    else:
        show_status(desk.out, facts)


_PARTS = {"redis": ("store", "key-value store"), "opa": ("policy", "policy engine")}
"""By the interface's name for a dependency: its name in `backends`, and in gatectl doctor."""


def show_status(out: Output, status: Status) -> None:
    """Print the facts, the most important ones first."""
    pairs: list[tuple[str, object]] = [
        ("status", status.status),
        ("draining", status.draining),
        ("pending approvals", status.pending_approvals),
        ("unresolved intents", status.unresolved_intents),
        ("in flight", status.in_flight_executions),
        ("actions", status.actions_registered),
    ]
    for name, is_up in status.dependencies.items():
        state = ("answers" if is_up else "is down") if isinstance(is_up, bool) else is_up
        part, words = _PARTS.get(name, ("", name.replace("_", " ")))
        backend = (status.backends or {}).get(part)
        pairs.append((words, state if backend is None else f"{state} ({backend})"))
    webhooks = status.webhooks
    if webhooks is not None:
        count = webhooks.pending_deliveries
        pending = "waiting deliveries not known" if count is None else f"{count} waiting"
        gone = f"; disabled, as they answered 410: {plain(webhooks.gone)}" if webhooks.gone else ""
        pairs.append(("webhooks", pending + gone if webhooks.active or count else "none"))
    volume = status.ledger_volume
    if volume is not None and volume.is_full:
        free = "room" if volume.free_bytes is None else f"{volume.free_bytes:,} bytes free"
        told = f"full: {free}, {volume.min_free_bytes:,} needed; calls are refused: docs/runbooks/full-disk.md"
        pairs.append(("ledger volume", told))
    if status.crash_loops:
        pairs.append(("crash loops", plain(status.crash_loops)))
    pairs += _of_the_log(status.checkpoint)
    pairs += [
        ("policy version", status.policy_version),
        ("epoch", status.revocation_epoch),
        ("version", status.version),
        ("up", span(max(0, status.uptime_seconds))),
        ("settings", f"weakened: {plain(status.weakened)}" if status.weakened else "nothing is weakened"),
    ]
    out.facts((lines(name), value) for name, value in pairs)


def _of_the_log(last: LastCheckpoint | None) -> list[tuple[str, object]]:
    """The last checkpoint, and which witnesses have cosigned it."""
    if last is None:
        return []
    pairs: list[tuple[str, object]] = [
        ("checkpoint", f"{last.size} entries, {span(max(0, last.age_seconds))} ago, root {plain(last.root)}")
    ]
    for one in last.witnesses:
        name = f"witness {plain(one.name)}"
        if one.has_cosigned:
            pairs.append((name, f"cosigned, {plain(one.time)}"))
        else:
            until = "has cosigned nothing" if one.size is None else f"cosigned {one.size} entries, {plain(one.time)}"
            pairs.append((name, until if one.problem is None else f"{until}; {plain(one.problem)}"))
    return pairs


@click.command(cls=Command)
@click.option("--wait", is_flag=True, help="Stay until nothing is in flight.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True, max=604_800), default=600.0,
              show_default=True, help="Seconds to wait at most.")  # fmt: skip
@click.option("--yes", "-y", is_flag=True, help="Do not ask; needed where there is no terminal.")
@pass_desk
def drain(desk: CliContext, wait: bool, timeout: float, yes: bool) -> None:
    """Refuse new work from now on; irreversible until the next start."""
    desk.confirm("let the gateway refuse all new work until it is started again?", yes)
    with desk.operator() as operator:
        drained = operator.drain()
        in_flight = _drained(operator, timeout) if wait else drained.in_flight_executions
    if desk.is_json:
        desk.out.document({**drained.raw, "in_flight_executions": in_flight})
        return
    already = " already" if drained.already_draining else ""
    desk.out.line(f"{desk.out.mark('draining')}{already}, {in_flight} in flight")


def _drained(operator: OperatorClient, timeout: float) -> int:
    """Follow what is in flight to 0. Raises Failure still_in_flight."""
    progress, follow = ProgressLine(), Follow(0.5, timeout)
    in_flight: int | None = None
    try:
        while True:
            facts = follow.ask(operator.status)
            in_flight = in_flight if facts is None else facts.in_flight_executions
            if in_flight == 0:
                return 0
            progress.show(f"draining · {'?' if in_flight is None else in_flight} in flight")
            if not follow.rest():
                break
    finally:
        progress.end()
    raise Failure(
        ScriptExit.FAILED,
        "still_in_flight",
        f"{in_flight} calls are in flight after {timeout:g} s; it goes on draining",
        "gatectl drain --wait --yes",
    )


@click.command(cls=Command)
@yes_option
@pass_desk
def reload(desk: CliContext, yes: bool) -> None:
    """Put in force manifests, policy, operators and principals as they lie on the gateway's disk: all, or nothing."""
    with desk.operator(execute_timeout=140.0) as operator:
        desk.change(operator, "put in force what lies on its disk?", yes)
        try:
            reloaded = operator.reload()
        except GatewayFault as error:
            if error.code == "reload_failed" and not desk.is_json:
                _tell_problems(operator, error.trace_id)
            raise
    if desk.is_json:
        desk.out.document(reloaded.raw)
    else:
        facts: list[tuple[str, Any]] = [
            ("actions", reloaded.manifests_loaded), ("policy", reloaded.policy_version), ("at", reloaded.reloaded_at),
        ]  # fmt: skip
        names = (("changed", reloaded.changed), ("needs restart", reloaded.needs_restart))
        desk.out.facts(facts + [(label, ", ".join(settings)) for label, settings in names if settings])


MAX_REASON = 500
"""Characters of a reason that an event has (docs/operations.md, "Reloading")."""
_NEXT_PROBLEM = re.compile(r"; (?=\S+  )")
"""A problem begins with its place and two spaces; its own text may have semicolons."""


def _tell_problems(operator: OperatorClient, trace_id: str | None) -> None:
    """Why a reload was refused: its event says so, one problem after the other."""
    with suppress(GatewayError):
        where = EventFilter(event_type="AdminReload", trace_id=trace_id)
        for event in operator.events(where, 1).events:
            reason = event.reason or ""
            for problem in _NEXT_PROBLEM.split(reason):
                note(problem)
            if len(reason) >= MAX_REASON:
                note("… the event ends here: the gateway's log and gateway check have every problem")


@click.command("revoke-all", cls=Command)
@click.option("--yes", "-y", is_flag=True, help="Do not ask; needed where there is no terminal.")
@pass_desk
def revoke_all(desk: CliContext, yes: bool) -> None:
    """End every lease and every held plan at once."""
    desk.confirm("end every lease and every held plan now?", yes)
    with desk.operator() as operator:
        revoked = operator.revoke_all()
    if desk.is_json:
        desk.out.document(revoked.raw)
    else:
        desk.out.line(f"revoked: epoch {revoked.previous_epoch} -> {revoked.current_epoch}")


@click.command(cls=Command)
@pass_desk
def epoch(desk: CliContext) -> None:
    """The revocation epoch in force."""
    with desk.operator() as operator:
        current = operator.epoch()
    if desk.is_json:
        desk.out.document({"current_epoch": current})
    else:
        desk.out.line(str(current))


@click.command(cls=Command)
@click.option("--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              help="Write this file instead, whole or not at all: for a textfile collector.")  # fmt: skip
@pass_desk
def metrics(desk: CliContext, file: Path | None) -> None:
    """The gateway's metrics as OpenMetrics text."""
    if desk.is_json:
        raise usage("metrics are OpenMetrics text, not JSON", "leave out --json")
    with desk.operator() as operator:
        text = operator.metrics()
    if file is not None:
        with written(file):
            _replace(file, text)
    elif sys.stdout.isatty():
        desk.out.line(lines(text).rstrip("\n"))
    else:
        sys.stdout.write(text)


def _replace(file: Path, text: str) -> None:
    """Put a new file in its place, mode 0644 for the collector. Raises OSError."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
