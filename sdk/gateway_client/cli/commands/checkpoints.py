"""gatectl audit checkpoint and audit watch: what the log commits to, and whether it keeps to it."""

import base64
from pathlib import Path
from typing import Any

import click

from gateway_client.cli.arguments.verifier_keys import key_of
from gateway_client.cli.commands.audit import audit
from gateway_client.cli.desk import CliContext, Group, pass_desk
from gateway_client.cli.display.output import Output, note
from gateway_client.cli.display.safe import lines, short
from gateway_client.cli.display.times import clock
from gateway_client.cli.exits import usage
from gateway_client.cli.watching.following import Follow
from gateway_client.cli.watching.log_watch import Alarm, LastVerified, LogWatch
from gateway_client.errors import EvidenceRefused
from gateway_client.evidence.notes import Checkpoint, Note

DAY = 86_400


@audit.command("checkpoint")
@click.option("--note", "is_note", is_flag=True, help="The signed note itself, to be kept as a file.")
@pass_desk
def checkpoint(desk: CliContext, is_note: bool) -> None:
    """Show a signed checkpoint of everything that is durable now. Keep it where the gateway can't write."""
    if is_note and desk.is_json:
        raise usage("--note and --json exclude each other", "the note is the member checkpoint of the JSON")
    with desk.operator() as operator:
        shown = operator.checkpoint()
    if desk.is_json:
        desk.out.document(shown.raw)
    elif is_note:
        desk.out.line(lines(shown.checkpoint.removesuffix("\n")))
    else:
        pairs: list[tuple[str, object]] = [
            ("log", shown.origin), ("entries", shown.size), ("root", shown.root), ("time", shown.time),
            ("unresolved intents", shown.unresolved_intents),
        ]  # fmt: skip
        desk.out.facts(pairs + [("key", key) for key in shown.keys])


@audit.command("watch")
@click.option("--state", "file", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="Keeps the last checkpoint; made when it is not there.")  # fmt: skip
@click.option("--interval", type=click.FloatRange(0.2, DAY), default=60.0, show_default=True, help="Seconds.")
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option("--for", "seconds", type=click.FloatRange(min=0, max=604_800), help="End after so many seconds.")
@click.option("--origin-key", metavar="VKEY", help="The log's public key, NAME+ID+KEY, instead of the first one seen.")
@pass_desk
def watch(
    desk: CliContext, file: Path, interval: float, once: bool, seconds: float | None, origin_key: str | None
) -> None:  # fmt: skip
    """Follow the log from outside: each checkpoint must continue the last one that was seen.

    Exit 8, with the FILE as it was, on the first that does not: the log was cut, rewritten or exchanged.
    """
    trusted = None if origin_key is None else key_of(origin_key)
    follow = Follow(interval, 0 if once else seconds)
    with desk.operator() as operator:
        run(desk.out, LogWatch(operator, file, trusted), follow, file, must=once)


def run(out: Output, log: LogWatch, follow: Follow, file: Path, *, must: bool) -> None:
    """Look until it is time to end. `must`: a gateway that does not answer is an error. Raises Alarm, GatewayError."""
    told: LastVerified | None = None
    while True:
        before = log.kept
        try:
            kept = follow.ask(log.look, must=must)
        except Alarm as alarm:
            _tell_alarm(out, alarm)
            raise
        if kept is not None and kept != told:
            if before is None and log.is_pinning:
                note(f"gatectl: pinned in {file}, since no --origin-key was given: {kept.origin_key}")
            _tell(out, "first" if before is None else "consistent", kept.checkpoint, kept.note, kept.origin_key)
            told = kept
        if not follow.rest():
            return


def _tell(out: Output, event: str, point: Checkpoint | None, text: str, key: str | None) -> None:
    if out.is_json:
        members: dict[str, Any] = dict.fromkeys(("origin", "size", "root", "time", "unresolved_intents"))
        if point is not None:
            members = {
                "origin": point.origin, "size": point.size, "root": base64.b64encode(point.root).decode(),
                "time": point.time, "unresolved_intents": point.unresolved_intents,
            }  # fmt: skip
        out.record({"event": event, **members, "origin_key": key, "checkpoint": text})
    elif point is not None:
        root = base64.b64encode(point.root).decode()
        out.line(f"{clock(point.time)}  {out.mark(event)}  {short(point.origin)}  {point.size} entries  root {root}")


def _tell_alarm(out: Output, alarm: Alarm) -> None:
    """The checkpoint that does not fit is evidence: all of it is shown, whatever it is."""
    if out.is_json:
        try:
            parsed = Checkpoint.parse(Note.parse(alarm.note).text)
        except EvidenceRefused:
            parsed = None
        _tell(out, "alarm", parsed, alarm.note, None)
    else:
        out.line(f"{out.mark('alarm')}: this checkpoint does not fit:")
        out.line(lines(alarm.note.removesuffix("\n")))


def add_to(_cli: Group) -> None:
    """The commands are hung up already, under `audit`."""
