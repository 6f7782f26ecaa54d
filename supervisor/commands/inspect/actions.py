"""`gateway actions history` and `gateway actions rollback`: the manifests that were in force on this machine."""

import argparse
import json
import os
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from ipc.texts.visible import visible
from supervisor.commands import Commands
from supervisor.commands.inspect.action_rollback import roll_back
from supervisor.commands.named import add_gateway, named_settings, refuse_other_folders
from supervisor.life.archive import ArchiveDamaged, ManifestArchive, ManifestVersion
from supervisor.refusal import Refused

_COLUMNS = ("", "IN FORCE FROM", "VERSION", "MANIFEST", "MODULE")
_SHOWN_DIGITS = 12
_GONE = "(gone)"


def add(commands: Commands) -> None:
    """Put `actions` beside the other commands."""
    actions = commands.add_parser("actions", help="list earlier manifests of an action, or bring one back")
    kinds = actions.add_subparsers(title="commands", required=True, metavar="COMMAND")
    history = kinds.add_parser(
        "history",
        help="list the manifests of an action that were in force",
        description="List the manifests of an action that were in force, newest first, with the digests that audit "
        "events name. The last 32 loads that changed it are kept. Run it as the gateway's user or as root.",
    )
    history.add_argument("--json", action="store_true", help="print the list as JSON, with whole digests")
    rollback = kinds.add_parser(
        "rollback",
        help="bring an earlier manifest of an action back in force",
        description="Put an earlier manifest, and its module, back in the manifests folder and have a running gateway "
        "reload. If the result does not pass gateway check, nothing is changed. Leaves an event ActionRolledBack with "
        "both digests and the user. Needs to write the manifests folder, and to be the gateway's user or root.",
    )
    rollback.add_argument(
        "--to", metavar="VERSION",
        help="a version, or the first 8 or more digits of a digest (default: the manifest before the one in force)",
    )  # fmt: skip
    for parser, run in ((history, _history), (rollback, _rollback)):
        parser.add_argument("action", metavar="ACTION", help="id of the action")
        add_gateway(parser)
        parser.set_defaults(run=run)


def _history(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    try:
        versions = ManifestArchive(Path(settings.state_dir)).history().get(options.action)
    except ArchiveDamaged as error:
        raise Refused(Exit.FAILED, str(error)) from None
    if versions is None:
        raise Refused(Exit.FAILED, f"no manifest of {visible(options.action)} is recorded in {settings.state_dir}.")
    rows = list(reversed(versions))
    print(json.dumps(msgspec.to_builtins(rows)) if options.json else _table(rows))
    return Exit.OK


def _table(versions: list[ManifestVersion]) -> str:
    rows = [_COLUMNS, *(_cells(one, is_first=one is versions[0]) for one in versions)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _cells(one: ManifestVersion, *, is_first: bool) -> tuple[str, ...]:
    mark = "*" if is_first else ""
    if one.digest is None:
        return (mark, one.at, _GONE, "", "")
    return (mark, one.at, one.version, _short(one.digest), "" if one.module is None else _short(one.module))


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:_SHOWN_DIGITS]


def _rollback(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    refuse_other_folders(options, settings)
    print(roll_back(settings, options.action, options.to, os.environ))
    return Exit.OK
