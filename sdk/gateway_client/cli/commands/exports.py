"""gatectl audit export: events into a file for analysis. A chain to verify is `audit events --export`."""

import os
import tempfile
from pathlib import Path

import click

from gateway_client.cli.arguments.files import written
from gateway_client.cli.commands.audit import audit
from gateway_client.cli.desk import CliContext, Group, pass_desk
from gateway_client.cli.display.output import ProgressLine
from gateway_client.cli.display.safe import safe
from gateway_client.cli.display.times import bound
from gateway_client.cli.evidence_export.fetching import fetch
from gateway_client.cli.evidence_export.formats import WRITERS, parquet_library
from gateway_client.cli.evidence_export.partial import ExportBounds, PartialExport
from gateway_client.cli.evidence_export.sealed import gap_of
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.results import EventFilter


@audit.command("export")
@click.option("--format", "kind", type=click.Choice(tuple(WRITERS)), default="jsonl", show_default=True,
              help="parquet needs the extra of this name.")  # fmt: skip
@click.option("--out", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file.")
@click.option("--after", metavar="TIME", help="Later than this: ISO 8601, or 15m, 6h, 2d ago.")
@click.option("--before", metavar="TIME", help="Earlier than this.")
@click.option("--action", metavar="ACTION", help="Of one action.")
@click.option("--resume", "resumes", is_flag=True, help="Continue an export that was cut, from FILE.part.")
@click.option("--force", "replaces", is_flag=True, help="Replace the file, and an export that was cut.")
@pass_desk
def export(
    desk: CliContext, kind: str, target: Path, after: str | None, before: str | None, action: str | None,
    resumes: bool, replaces: bool,
) -> None:  # fmt: skip
    """Write events into a file, newest first: JSON lines, CSV or Parquet.

    FILE is there whole or not at all; meanwhile FILE.part has what has come. Where events of these bounds were sealed,
    the command says in which segments they are, and ends with exit code 4.
    """
    if resumes and replaces:
        raise usage("--resume and --force exclude each other")
    if kind == "parquet":
        parquet_library()
    if os.path.lexists(target) and not replaces:
        raise _file_exists(target)
    progress = ProgressLine()
    path = target.with_name(f"{target.name}.part")
    typed = {"after": after, "before": before, "action": action}
    try:
        with written(target), _part(path, typed, progress, resumes=resumes, replaces=replaces) as part:
            with desk.operator() as operator:
                fetch(operator, part, progress)
                gap = gap_of(operator, part.bounds.where)
            progress.show(f"{part.position.count} events, writing {target.name}")
            _write(part, kind, target, replaces=replaces)
    finally:
        progress.end()
    path.unlink()
    if desk.is_json:
        desk.out.document({"file": str(target), "format": kind, "events": part.position.count})
    else:
        desk.out.line(f"{part.position.count} events in {safe(str(target))}")
    if gap is not None:
        raise gap.failure(str(target))


def add_to(_cli: Group) -> None:
    """The command is hung up already, under `audit`."""


def _part(
    path: Path, typed: dict[str, str | None], progress: ProgressLine, *, resumes: bool, replaces: bool
) -> PartialExport:
    if resumes and path.exists():
        return PartialExport.resume(path, typed, progress)
    after, before = typed["after"], typed["before"]
    where = EventFilter(
        action_id=typed["action"], after=None if after is None else bound(after),
        before=None if before is None else bound(before),
    )  # fmt: skip
    return PartialExport.begin(path, ExportBounds(typed, where), replaces=replaces)


def _write(part: PartialExport, kind: str, target: Path, *, replaces: bool) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        made = Path(folder) / target.name
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            WRITERS[kind](part, file)
            file.flush()
            os.fsync(descriptor)
        if replaces:
            made.replace(target)
            return
        try:
            os.link(made, target)  # a rename would replace what has come there meanwhile
        except FileExistsError:
            raise _file_exists(target) from None


def _file_exists(target: Path) -> Failure:
    return Failure(ScriptExit.CONFLICT, "file_exists", f"{target} is there already", "name another file, or --force")
